//! Finds the name that a user probably meant.

/// Returns the name that differs from `name` in the fewest characters. `None` if every name differs in more than one
/// character and in more than a quarter of the characters of `name`. Of equally near names, returns the first.
#[cfg_attr(not(feature = "program"), allow(unreachable_pub, reason = "the program uses this function"))]
pub fn nearest_name<'n>(name: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let wanted: Vec<char> = name.chars().collect();
    let most = (wanted.len() / 4).max(1);
    let mut best: Option<(usize, &str)> = None;
    for other in names {
        let most = best.map_or(most, |(known, _)| known.saturating_sub(1));
        if let Some(distance) = distance(&wanted, other, most) {
            best = Some((distance, other));
        }
    }
    best.map(|(_, other)| other)
}

/// The number of characters to insert, to remove, to replace, or to exchange with the next character; `None` if it is
/// larger than `most`.
fn distance(wanted: &[char], other: &str, most: usize) -> Option<usize> {
    let other: Vec<char> = other.chars().collect();
    if wanted.len().abs_diff(other.len()) > most {
        return None;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, letter) in wanted.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, with) in other.iter().enumerate() {
            let replaced = row[j] + usize::from(letter != with);
            let mut least = replaced.min(row[j + 1] + 1).min(next[j] + 1);
            if i > 0 && j > 0 && *letter == other[j - 1] && wanted[i - 1] == *with {
                least = least.min(before[j - 1] + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
    }
    row.last().copied().filter(|distance| *distance <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found() {
        let names = ["explicit/cache", "explicit/cache/keys", "record", "max-frames"];
        for (name, expected) in [
            ("explicit/cahce", Some("explicit/cache")),
            ("explicit/cache/key", Some("explicit/cache/keys")),
            ("recrod", Some("record")),
            ("max-frame", Some("max-frames")),
            ("record", Some("record")),
            ("nothing", None),
            ("", None),
        ] {
            assert_eq!(nearest_name(name, names), expected, "{name}");
        }
    }
}
