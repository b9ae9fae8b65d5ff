//! Writes the tables that group blocks by a key other than the stack.

use core::fmt::{self, Display};

use crate::print::{CleanText, blocks, mark, number, share};
use crate::records::{Analysis, KindSection, RecordTable, TableKey, TableRow};

/// The requested tables; see [`AnalyzeOptions::by`](crate::AnalyzeOptions::by).
#[derive(Debug)]
pub struct TablesText<'a>(&'a Analysis);

impl Analysis {
    /// The requested tables as text.
    pub fn by_text(&self) -> TablesText<'_> {
        TablesText(self)
    }
}

impl TableKey {
    /// The key's name in the title of a table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Frame => "stack frame",
            Self::Module => "module",
            Self::Reporter => "reporter",
            Self::Size => "size",
            Self::Type => "type",
        }
    }
}

impl Display for TablesText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for section in &self.0.sections {
            for table in &section.tables {
                // Unreported blocks have no reporter.
                if !(table.by == TableKey::Reporter && section.kind == crate::RecordKind::Unreported) {
                    write_table(f, section, table)?;
                }
            }
        }
        Ok(())
    }
}

fn write_table(f: &mut fmt::Formatter<'_>, section: &KindSection, table: &RecordTable) -> fmt::Result {
    let kind = section.kind.name();
    writeln!(f, "{kind} by {} {{", table.by.name())?;
    let width = |amount: fn(&TableRow) -> i128| {
        table.rows.iter().map(|row| mark(row.estimated).len() + number(amount(row)).len()).max().unwrap_or(0)
    };
    let (bytes, counts) = (width(|row| row.sums.usable()), width(|row| row.sums.num));
    for row in &table.rows {
        let mark = mark(row.estimated);
        let usable = format!("{mark}{}", number(row.sums.usable()));
        let num = format!("{mark}{}", number(row.sums.num));
        let plural = if blocks(row.sums.num).ends_with('s') { "s" } else { " " };
        let share = share(row.sums.usable(), section.sums.usable());
        write!(f, "  {usable:>bytes$} bytes ({share:6.2}%) in {num:>counts$} block{plural}  ")?;
        match table.by {
            TableKey::Frame => {
                let records = number(row.records as i128);
                let plural = if row.records == 1 { "" } else { "s" };
                writeln!(f, "{} ({records} record{plural})", CleanText(&row.name))?;
            }
            TableKey::Size => writeln!(f, "{} bytes each", row.name)?,
            TableKey::Module | TableKey::Reporter | TableKey::Type => {
                writeln!(f, "{}", CleanText(&row.name))?;
            }
        }
    }
    if table.rows.is_empty() {
        f.write_str("  (none)\n")?;
    }
    let more = table.all - table.rows.len();
    if more > 0 {
        writeln!(f, "  and {} more", number(more as i128))?;
    }
    for part in &table.parts {
        let share = share(part.sums.usable(), section.sums.usable());
        writeln!(f, "  {share:6.2}% of bytes: {}", part.name)?;
    }
    f.write_str("}\n\n")
}
