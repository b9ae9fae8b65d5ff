//! A time of a recording.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use thiserror::Error;

use crate::dump::RecordingOutline;

/// A time of a recording: its peak, its end, or a time after its start.
///
/// ```
/// use core::time::Duration;
/// use dmd_analyze::recording::Moment;
///
/// assert_eq!("12.5s".parse(), Ok(Moment::After(Duration::from_millis(12_500))));
/// assert_eq!("1m30s".parse(), Ok(Moment::After(Duration::from_secs(90))));
/// assert_eq!("peak".parse(), Ok(Moment::Peak));
/// assert!("12.5".parse::<Moment>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Moment {
    /// The first time at which the sum of the live blocks' usable bytes was highest.
    Peak,
    /// The end of the recording.
    End,
    /// This long after the start. All events up to this time have happened.
    After(Duration),
}

/// The error for a text that is not a [`Moment`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("'{0}' is not peak, end, or a time such as 12.5s, 300ms or 1m30s")]
pub struct MomentError(String);

const UNITS: [(&str, f64); 5] = [("ms", 1e-3), ("us", 1e-6), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];

impl FromStr for Moment {
    type Err = MomentError;

    fn from_str(text: &str) -> Result<Self, MomentError> {
        let wrong = || MomentError(text.to_owned());
        match text {
            "peak" => return Ok(Self::Peak),
            "end" => return Ok(Self::End),
            _ => {}
        }
        let mut rest = text;
        let mut seconds = 0.0;
        while !rest.is_empty() || text.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
            let number: f64 = rest[..digits].parse().map_err(|_| wrong())?;
            let unit = &rest[digits..];
            let of_unit = unit.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(unit.len());
            let (_, factor) = UNITS.iter().find(|(name, _)| *name == &unit[..of_unit]).ok_or_else(wrong)?;
            seconds += number * factor;
            rest = &unit[of_unit..];
        }
        Duration::try_from_secs_f64(seconds).map(Self::After).map_err(|_| wrong())
    }
}

impl Moment {
    /// The time since the start of the recording. `outline` contains the facts of the recording.
    pub fn time(self, outline: &RecordingOutline) -> Duration {
        match self {
            Self::Peak => outline.peak.time,
            Self::End => outline.end.time,
            Self::After(time) => time,
        }
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Peak => f.write_str("peak"),
            Self::End => f.write_str("end"),
            Self::After(time) => write!(f, "{}s", time.as_secs_f64()),
        }
    }
}
