//! The facts of a black box as a sentence.

use core::fmt::{self, Display};

use super::line::bytes;
use crate::dump::BlackBoxDump;

impl Display for BlackBoxDump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bound, limit, used, milliseconds, .. } = self;
        let size = |amount: u64| bytes(amount.into());
        let bound = bound.replace('-', " ");
        let percent = |part: u64| u128::from(part) * 100 / u128::from((*limit).max(1));
        f.write_str("The black box wrote this dump ")?;
        match self.reason.as_str() {
            "no-memory" => f.write_str("because the allocator had no memory, ")?,
            "pressure" => f.write_str("because the kernel had to free memory, ")?,
            "growth" => f.write_str("because the memory had grown, ")?,
            "predicted" => f.write_str("because the memory grew fast, ")?,
            _ => {}
        }
        match limit.checked_sub(*used) {
            Some(left) => write!(f, "{} % below the limit", percent(left))?,
            None => write!(f, "{} % above the limit", percent(used.saturating_sub(*limit)))?,
        }
        write!(f, " ({} of {}, {bound})", size(*used), size(*limit))?;
        if let Some(life) = &self.life {
            let later = life.milliseconds.saturating_sub(*milliseconds);
            let (seconds, tenths) = (later / 1000, later % 1000 / 100);
            write!(f, ", {seconds}.{tenths} s before the last sign of life")?;
            if life.most_used > *used {
                write!(f, " (at most {} by then)", size(life.most_used))?;
            }
        }
        f.write_str(".")?;
        if self.is_partial {
            f.write_str("\nThe dump is not complete: the process was killed while it wrote the dump.")?;
        }
        Ok(())
    }
}
