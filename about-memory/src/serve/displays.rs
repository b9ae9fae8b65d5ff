//! The user's own groups and labels.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::session::GroupBy;

/// The user's own groups and labels, as Firefox's Memory tool has them in its settings.
///
/// In JSON they have the form of `devtools.memory.custom-census-displays`, `custom-label-displays` and
/// `custom-tree-map-displays` of Firefox:
///
/// ```
/// use about_memory::serve::Displays;
///
/// let text = r#"{ "census": { "files": {
///     "displayName": "File", "tooltip": "By file", "inverted": false, "breakdown": { "by": "filename" } } } }"#;
/// assert!(Displays::from_json(text).is_ok());
/// let error = Displays::from_json(&text.replace("filename", "file")).unwrap_err();
/// assert!(error.starts_with("census: files: "), "{error}");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Displays {
    census: BTreeMap<String, OfferedDisplay>,
    label: BTreeMap<String, OfferedDisplay>,
    #[serde(rename = "tree-map")]
    tree_map: BTreeMap<String, OfferedDisplay>,
}

/// A way to group or to label nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfferedDisplay {
    display_name: String,
    #[serde(default)]
    tooltip: String,
    #[serde(default)]
    inverted: bool,
    breakdown: Value,
}

impl Displays {
    /// Reads displays from JSON.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not valid. The error is one line with the reason and the place.
    pub fn from_json(text: &str) -> Result<Self, String> {
        let displays: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let lists =
            [("census", &displays.census), ("label", &displays.label), ("tree-map", &displays.tree_map)];
        for (list, all) in lists {
            for (name, display) in all {
                GroupBy::new(&display.breakdown.to_string())
                    .map_err(|error| format!("{list}: {name}: {error}"))?;
            }
        }
        Ok(displays)
    }
}
