//! Writes JSON arrays directly to a text.

/// Appends a JSON array. `item` appends each element.
pub(crate) fn list<T>(
    out: &mut String,
    items: impl IntoIterator<Item = T>,
    mut item: impl FnMut(&mut String, T),
) {
    out.push('[');
    for (at, value) in items.into_iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        item(out, value);
    }
    out.push(']');
}
