//! A call on a stack. Only this module parses and writes the texts of calls in dumps.
//!
//! A text is `#00: FUNCTION (FILE:LINE)` if the file is known, and `#00: FUNCTION[MODULE +0xOFFSET]` if only the module
//! is known. The number is always 00, because stacks share frames. An analysis prints texts of other forms
//! unchanged.

use core::fmt;
use core::ops::Range;

/// The number at the start of every text.
const NUMBER: &str = "#00: ";

/// The text for an unknown function, file or line.
const UNKNOWN: &str = "???";

/// A call on a stack. Unknown parts are `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallFrame<'t> {
    /// The name of the called function.
    pub function: Option<&'t str>,
    /// The function's symbol, if the look-up kept it and if it differs from `function`.
    pub system_name: Option<&'t str>,
    /// The source file, as its path is in the debug information.
    pub file: Option<&'t str>,
    /// The line of the file.
    pub line: Option<u32>,
    /// The column in the line.
    pub column: Option<u32>,
    /// The program or library that holds the code.
    pub module: Option<&'t str>,
    /// The place of the code in the module, as an address in the module's file.
    pub offset: Option<u64>,
    /// Whether the compiler inlined the function into its caller.
    pub inlined: bool,
    /// Whether the call runs inside of the global allocator: it is the allocator's entry, or the entry calls it through
    /// inlined functions. The look-up of symbols sets this, whatever the functions' names are.
    pub in_allocator: bool,
}

impl<'t> CallFrame<'t> {
    /// The function, or `???`.
    pub fn name(&self) -> &'t str {
        self.function.unwrap_or(UNKNOWN)
    }

    /// The source file or, if it is unknown, the module.
    pub(crate) fn place(&self) -> Option<&'t str> {
        self.file.or(self.module)
    }
}

/// Writes the frame's text in a dump, without the number.
impl fmt::Display for CallFrame<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match (self.file, self.line, self.module) {
            (Some(file), Some(line), _) => write!(f, " ({file}:{line})"),
            (Some(file), None, _) => write!(f, " ({file}:{UNKNOWN})"),
            (None, _, Some(module)) => write!(f, "[{module} +0x{:x}]", self.offset.unwrap_or_default()),
            (None, _, None) if self.function.is_none() => write!(f, " ({UNKNOWN}:{UNKNOWN})"),
            (None, _, None) => Ok(()),
        }
    }
}

/// The ranges of a frame's parts in its text.
#[derive(Clone, Debug, PartialEq)]
struct TextParts {
    /// The start of the function, after the number. 0 if there is no number.
    start: u32,
    function_end: u32,
    place: TextPlace,
    in_allocator: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum TextPlace {
    Nowhere,
    /// ` (FILE:LINE)` after the function, up to the end of the text.
    Source {
        file_end: u32,
        line: Option<u32>,
    },
    /// `[MODULE +0xOFFSET]` after the function, up to the end of the text.
    Module {
        file_end: u32,
        offset: Option<u64>,
    },
}

impl TextParts {
    fn parse(text: &str) -> Self {
        if u32::try_from(text.len()).is_err() {
            // A text of 4 GiB or more is printed unchanged: its ranges do not fit into 32 bits.
            return Self { start: 0, function_end: 0, place: TextPlace::Nowhere, in_allocator: false };
        }
        let start = number_len(text);
        let body = &text[start..];
        let parts = |function_end: usize, place| Self {
            start: start as u32,
            function_end: function_end as u32,
            place,
            in_allocator: false,
        };
        let nowhere = parts(text.len(), TextPlace::Nowhere);
        if let Some(rest) = body.strip_suffix(')') {
            let Some(open) = rest.rfind(" (") else { return nowhere };
            let inner = start + open + 2..text.len() - 1;
            let colon = text[inner.clone()].rfind(':').map(|at| inner.start + at);
            let line = colon.and_then(|colon| text[colon + 1..inner.end].parse().ok());
            return parts(
                start + open,
                TextPlace::Source { file_end: colon.unwrap_or(inner.end) as u32, line },
            );
        }
        let Some((rest, offset)) = body.strip_suffix(']').and_then(|body| body.rsplit_once(" +0x")) else {
            return nowhere;
        };
        // A name such as `operator new[](unsigned long)` contains brackets, and a path may contain brackets.
        let open = match rest {
            rest if rest.starts_with("???[") => Some(UNKNOWN.len()),
            rest => rest.find("[/").or_else(|| rest.rfind('[')),
        };
        let Some(open) = open else { return nowhere };
        let is_number = !offset.is_empty() && offset.bytes().all(|byte| byte.is_ascii_hexdigit());
        let offset = u64::from_str_radix(offset, 16).ok().filter(|_| is_number);
        parts(start + open, TextPlace::Module { file_end: (start + rest.len()) as u32, offset })
    }
}

/// The length of a number such as `#00: ` at the start of a dump's text.
fn number_len(text: &str) -> usize {
    let digits = text.strip_prefix('#').and_then(|rest| rest.split_once(": ")).map(|(digits, _)| digits);
    match digits {
        Some(digits) if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            "#: ".len() + digits.len()
        }
        _ => 0,
    }
}

/// The parsed parts of a frame's text.
#[derive(Clone, Debug)]
pub(crate) struct ParsedFrame(TextParts);

impl ParsedFrame {
    pub(crate) fn new(text: &str) -> Self {
        Self(TextParts::parse(text))
    }

    /// Returns the text of a frame, and its parts.
    pub(crate) fn from_frame(frame: &CallFrame<'_>) -> (String, Self) {
        let text = format!("{NUMBER}{frame}");
        let function_end = NUMBER.len() + frame.name().len();
        let place = match (frame.file, frame.module) {
            (Some(file), _) => TextPlace::Source {
                file_end: (function_end + " (".len() + file.len()) as u32,
                line: frame.line,
            },
            (None, Some(module)) => TextPlace::Module {
                file_end: (function_end + "[".len() + module.len()) as u32,
                offset: frame.offset,
            },
            (None, None) => TextPlace::Nowhere,
        };
        let in_allocator = frame.in_allocator;
        (
            text,
            Self(TextParts {
                start: NUMBER.len() as u32,
                function_end: function_end as u32,
                place,
                in_allocator,
            }),
        )
    }

    /// Combines the parts with the text from which they were parsed.
    pub(crate) fn with<'t>(&'t self, text: &'t str) -> FrameText<'t> {
        FrameText { text, parts: &self.0 }
    }

    /// Sets [`CallFrame::in_allocator`].
    pub(crate) fn set_in_allocator(&mut self) {
        self.0.in_allocator = true;
    }
}

/// A frame as a dump's text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameText<'t> {
    text: &'t str,
    parts: &'t TextParts,
}

/// The start of a text that is a type, not a frame: the type of the blocks that the frames after it allocate.
pub(crate) const TYPE: &str = "\0type ";

impl<'t> FrameText<'t> {
    pub(crate) fn parsed(self) -> ParsedFrame {
        ParsedFrame(self.parts.clone())
    }

    pub(crate) fn as_str(self) -> &'t str {
        self.text
    }

    pub(crate) fn is_in_allocator(self) -> bool {
        self.parts.in_allocator
    }

    /// The name of the type; `None` if the text is a frame.
    pub(crate) fn as_type(self) -> Option<&'t str> {
        self.text.strip_prefix(TYPE)
    }

    /// The text after its number.
    pub(crate) fn without_number(self) -> &'t str {
        &self.text[self.parts.start as usize..]
    }

    /// The function or the type. If the function is unknown, returns the text after the number, so that such frames
    /// differ by their offsets.
    pub(crate) fn short_name(self) -> &'t str {
        self.as_type().or(self.frame().function).unwrap_or_else(|| self.without_number())
    }

    /// The text that `dmd.py` prints after its own number: all except the first three characters.
    pub(crate) fn without_stand_in(self) -> &'t str {
        let at = self.text.char_indices().nth(3).map_or(self.text.len(), |(at, _)| at);
        &self.text[at..]
    }

    /// The text between the brackets after the function; empty if there are no brackets.
    pub(crate) fn place(self) -> &'t str {
        if self.parts.place == TextPlace::Nowhere { "" } else { &self.text[self.inside()] }
    }

    /// The range between the brackets.
    fn inside(self) -> Range<usize> {
        let open = match self.parts.place {
            TextPlace::Nowhere => return 0..0,
            TextPlace::Source { .. } => " (",
            TextPlace::Module { .. } => "[",
        };
        self.parts.function_end as usize + open.len()..self.text.len() - 1
    }

    /// The module and the offset; `None` if the text has no number, or does not contain both.
    pub(crate) fn code(self) -> Option<(&'t str, u64)> {
        let CallFrame { module, offset, .. } = self.frame();
        if self.parts.start == 0 { None } else { module.zip(offset) }
    }

    pub(crate) fn frame(self) -> CallFrame<'t> {
        let known = |part: &'t str| Some(part).filter(|part| !part.is_empty() && *part != UNKNOWN);
        let function = known(&self.text[self.parts.start as usize..self.parts.function_end as usize]);
        let frame = CallFrame { function, in_allocator: self.parts.in_allocator, ..CallFrame::default() };
        let file = |end: u32| known(&self.text[self.inside().start..end as usize]);
        match self.parts.place {
            TextPlace::Nowhere => frame,
            TextPlace::Source { file_end, line } => CallFrame { file: file(file_end), line, ..frame },
            TextPlace::Module { file_end, offset } => CallFrame { module: file(file_end), offset, ..frame },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that the reader makes the expected frame from a text.
    fn check(text: &str, expected: CallFrame<'_>) {
        assert_eq!(ParsedFrame::new(text).with(text).frame(), expected, "{text}");
    }

    #[test]
    fn texts_are_read() {
        let known = |function| CallFrame { function: Some(function), ..CallFrame::default() };
        let source = |function, file, line| CallFrame { file: Some(file), line, ..known(function) };
        let module = |function, module, offset| CallFrame { module: Some(module), offset, ..known(function) };
        check("#00: f (a.c:1)", source("f", "a.c", Some(1)));
        check("#123: f (int) (a b:c.c:???)", source("f (int)", "a b:c.c", None));
        check("f (a.c)", source("f", "a.c", None));
        check("#00: f(int)", known("f(int)"));
        check("#x: f", known("#x: f"));
        check("#00: ??? (???:???)", CallFrame::default());
        check("#00: f[/lib/[x] y.so +0x1f]", module("f", "/lib/[x] y.so", Some(0x1f)));
        check("#00: operator new[](int)[lib.so +0x0]", module("operator new[](int)", "lib.so", Some(0)));
        check("#00: ???[a[b +0x1]", CallFrame { function: None, ..module("", "a[b", Some(1)) });
        check("#00: f[a +0xz]", module("f", "a", None));
        check("#00: f[a]", known("f[a]"));
        check("", CallFrame::default());
    }

    #[test]
    fn what_is_written_is_read() {
        for text in [
            "#00: f (a.c:1)",
            "#00: f (a.c:???)",
            "#00: f[/a +0x12]",
            "#00: ??? (???:???)",
            "#00: ???[/a +0x0]",
        ] {
            let parsed = ParsedFrame::new(text);
            let frame = parsed.with(text).frame();
            let (written, parts) = ParsedFrame::from_frame(&frame);
            assert_eq!(written, text);
            assert_eq!(parts.with(text).frame(), frame);
        }
    }
}
