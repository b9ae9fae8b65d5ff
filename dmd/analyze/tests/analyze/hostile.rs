//! Harmful dumps: damaged, deeply nested, or wrong. The reader must not panic, and its messages must contain the place
//! of the fault.

use std::io::Read;

use dmd_analyze::{Analysis, AnalyzeOptions, BlockOptions, DumpReadOptions, DumpTime};

use super::{TABLES, document, read};

fn message(text: &str) -> String {
    read(text).unwrap_err().to_string()
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let live = |blocks: &str| message(&document("live", blocks, TABLES));
    let good = r#"{"req": 1}, {"req": 1, "alloc": "A"}, "#;
    for (block, expected) in [
        (r#"{"req": 8, "alloc": "Z"}"#, "blockList[2].alloc: no trace 'Z' in traceTable"),
        (
            r#"{"req": 8, "alloc": "A", "reps": ["A", "ZZZZZZZZZ"]}"#,
            "blockList[2].reps[1]: no trace 'ZZZZZZZZZ' in traceTable",
        ),
        (r#"{"req": 8, "reps": ["A", "A", "A"]}"#, "blockList[2].reps: more than two"),
        (r#"{"req": 8, "reps": "A"}"#, "blockList[2].reps: not an array"),
        (r#"{"req": 8, "reps": [1]}"#, "blockList[2].reps: contains a value that is not a string"),
        (r#"{"req": 8, "alloc": 1}"#, "blockList[2].alloc: not a string"),
        (r#"{"slop": 8}"#, "blockList[2].req is missing"),
        (r#"{"req": -8}"#, "blockList[2].req: negative"),
        (r#"{"req": 8, "slop": -1}"#, "blockList[2].slop: negative"),
        (r#"{"req": 8, "num": -1}"#, "blockList[2].num: negative"),
        (r#"{"req": 1.5}"#, "blockList[2].req: not a whole number"),
        (r#"{"req": 1e400}"#, "blockList[2].req: not a whole number"),
        (r#"{"req": "8"}"#, "blockList[2].req: not a number"),
        (r#"{"req": [[]]}"#, "blockList[2].req: not a number"),
        (r#"{"req": 18446744073709551616}"#, "blockList[2].req: larger than 64 bits"),
        ("7", "blockList[2]: not an object"),
        ("null", "blockList[2]: not an object"),
    ] {
        assert_eq!(live(&format!("{good}{block}")), expected, "{block}");
    }
    let scan = |blocks: &str| message(&document("scan", blocks, TABLES));
    for (block, expected) in [
        (r#"{"req": 8}"#, "blockList[0].addr is missing"),
        (r#"{"req": 8, "addr": 5}"#, "blockList[0].addr: not a string"),
        (r#"{"req": 8, "addr": "+5"}"#, "blockList[0].addr: not a hexadecimal number"),
        (r#"{"req": 8, "addr": "11112222333344445"}"#, "blockList[0].addr: larger than 64 bits"),
        (r#"{"req": 8, "addr": "8", "contents": {}}"#, "blockList[0].contents: not an array"),
        (r#"{"req": 8, "addr": "8", "contents": ["0", 1]}"#, "blockList[0].contents[1]: not a string"),
        (
            r#"{"req": 8, "addr": "8", "contents": ["x"]}"#,
            "blockList[0].contents[0]: not a hexadecimal number",
        ),
    ] {
        assert_eq!(scan(block), expected, "{block}");
    }
    let tables = |tables: &str| message(&document("live", r#"{"req": 1}"#, tables));
    for (text, expected) in [
        (
            r#""traceTable": {"A": ["B", "C"]}, "frameTable": {"B": ""}"#,
            "traceTable['A'][1]: no frame 'C' in frameTable",
        ),
        (r#""traceTable": {"A": 1}, "frameTable": {}"#, "traceTable['A']: not an array"),
        (r#""traceTable": {"A": [1]}, "frameTable": {}"#, "traceTable['A'][0]: not a string"),
        (r#""traceTable": {}, "frameTable": {"B": null}"#, "frameTable['B']: not a string"),
        (r#""traceTable": [], "frameTable": {}"#, "traceTable: not an object"),
        (r#""traceTable": {}"#, "frameTable is missing"),
        (r#""frameTable": {}"#, "traceTable is missing"),
    ] {
        assert_eq!(tables(text), expected, "{text}");
    }
    for (text, expected) in [
        ("", "is empty: not a gzip or JSON file"),
        ("[]", "not a DMD dump: expected a JSON object"),
        ("{}", "version is missing"),
        ("{\"version\": 4}", "version 4 is not supported (expected 5)"),
        ("{\"version\": \"5\"}", "version '5' is not supported (expected 5)"),
        ("{\"version\": 5}", "invocation is missing"),
        ("{\"version\": 5, \"invocation\": 1}", "invocation: not an object"),
        ("{\"version\": 5, \"invocation\": {\"mode\": \"live\"}}", "invocation.dmdEnvVar is missing"),
        ("{\"version\": 5, \"invocation\": {\"dmdEnvVar\": null}}", "invocation.mode is missing"),
        ("{\"version\": 5, \"blockList\": {}}", "blockList: not an array"),
        ("{\"version\": 5, \"blockList\": [{\"req\": 1} 2]}", "not JSON: expected `,` or `]` at byte 40"),
        ("{\"version\": 5", "truncated after 13 bytes"),
        ("{\"version\": 5}}", "not JSON: expected the end at byte 14"),
    ] {
        assert_eq!(message(text), expected, "{text}");
    }
}

#[test]
fn counts_that_cannot_be_are_said_and_large_ones_are_exact() {
    let max = u64::MAX;
    let block = format!("{{\"req\": {max}, \"slop\": {max}, \"num\": {max}}}");
    assert_eq!(message(&document("live", &block, TABLES)), "blockList[0]: the sum of the sizes is too large");
    let large = "{\"req\": 1152921504606846976, \"num\": 1152921504606846976}";
    let blocks = [large; 63].join(",");
    let analysis = Analysis::new(read(document("live", &blocks, TABLES)).unwrap(), &AnalyzeOptions::new());
    assert_eq!(analysis.total().req, 63 << 120);
}

#[test]
fn odd_but_sound_dumps_are_read() {
    let depth = "[".repeat(127) + &"]".repeat(127);
    let text = format!(
        "\u{feff} {{\"x\": {depth}, \"frameTable\": {{\"uf\": \"\", \"uf\": \"ab\"}}, \"traceTable\": {{\"ut\": [\"uf\"], \"e\": []}}, \
         \"blockList\": [{{\"alloc\": \"ut\", \"req\": 1, \"unknown\": {{\"a\": [1]}}}}, {{\"req\": 2, \"alloc\": \"e\", \"reps\": []}}], \
         \"invocation\": {{\"mode\": \"dark-matter\", \"dmdEnvVar\": \"\\u001b[31m\"}}, \"version\": 5.0}}"
    );
    let analysis = Analysis::new(read(text).unwrap(), &AnalyzeOptions::new());
    let shown = analysis.text(&[]).to_string();
    assert_eq!(analysis.total().num, 2);
    assert!(shown.contains("$DMD = '\\u{1b}[31m'"), "{shown}");
    assert!(shown.contains("  Allocated at {\n  }\n"), "{shown}");
    assert!(shown.contains("    #01\n"), "{shown}");
}

#[test]
fn keys_are_any_strings_and_all_different() {
    let keys = ["A", "B", "AB", "BA", "ffff", "BAAAA", "", "g", "a b", "ABCDEFGH", "ABCDEFGHI", "é"];
    let list = |each: &dyn Fn(usize, &str) -> String| {
        keys.iter().enumerate().map(|(n, key)| each(n, key)).collect::<Vec<_>>().join(",")
    };
    let blocks = list(&|n, key| format!("{{\"req\": {}, \"alloc\": \"{key}\"}}", n + 1));
    let traces = list(&|_, key| format!("\"{key}\": [\"{key}\"]"));
    let frames = list(&|n, key| format!("\"{key}\": \"#00: frame{n}.\""));
    let tables = format!("\"traceTable\": {{{traces}}}, \"frameTable\": {{{frames}}}");
    let text = Analysis::new(read(document("live", &blocks, &tables)).unwrap(), &AnalyzeOptions::new())
        .text(&[])
        .to_string();
    for n in 0..keys.len() {
        let record = format!("  {} bytes ({0} requested", n + 1);
        let rest = text.split(&record).nth(1).unwrap_or_else(|| panic!("{record}: {text}"));
        assert!(rest.split("  }\n").next().unwrap().contains(&format!("#01: frame{n}.")), "{text}");
    }
    for key in keys {
        let missing = "\"traceTable\": {}, \"frameTable\": {}";
        let block = format!("{{\"req\": 1, \"alloc\": \"{key}\"}}");
        let expected = format!("blockList[0].alloc: no trace '{key}' in traceTable");
        assert_eq!(message(&document("live", &block, missing)), expected);
    }
}

#[test]
fn nesting_is_bounded() {
    let deep = "[".repeat(100_000);
    for text in [
        format!("{{\"x\": {deep}"),
        document("live", &format!("{{\"req\": 1, \"x\": {deep}"), ""),
        format!("{{\"invocation\": {{\"x\": {deep}"),
        format!("{{\"modules\": [{deep}"),
        deep.clone(),
    ] {
        let message = message(&text);
        assert!(message.starts_with("nested more than 128 levels deep at byte "), "{message}");
    }
}

/// A reader that returns `before`, then the same byte without end.
struct Endless {
    before: &'static [u8],
    then: u8,
}

impl Read for Endless {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if !self.before.is_empty() {
            return self.before.read(into);
        }
        into.fill(self.then);
        Ok(into.len())
    }
}

#[test]
fn a_text_without_end_is_not_read_without_end() {
    let options = DumpReadOptions::new().max_bytes(1 << 21).contents(true);
    for (before, then) in [
        ("{\"blockList\": [", b' '),
        ("{\"blockList\": [{\"x\": \"", b'a'),
        ("{\"traceTable\": {\"", b'A'),
        ("{\"frameTable\": {\"A\": \"", b'\\'),
        ("{\"blockList\": [{\"contents\": [", b' '),
    ] {
        let error =
            dmd_analyze::read_from(Endless { before: before.as_bytes(), then }, &options).unwrap_err();
        assert_eq!(error.to_string(), "contains more than 2097152 bytes of text", "{before}");
    }
    let blocks = ["{\"req\": 1}"; 11].join(",");
    let text = document("live", &blocks, TABLES);
    let error = dmd_analyze::read_from(text.as_bytes(), &DumpReadOptions::new().max_entries(10)).unwrap_err();
    assert_eq!(error.to_string(), "more than 10 blocks, traces, frames or words");
    let block = format!("{{\"req\": 8, \"addr\": \"8\", \"contents\": [{}\"0\"]}}", "\"0\",".repeat(81));
    let text = document("scan", &block, TABLES);
    let options = DumpReadOptions::new().max_entries(10).contents(true);
    assert!(dmd_analyze::read_from(text.as_bytes(), &options).is_err());
}

#[test]
fn stacks_without_end_are_refused() {
    let stack = |frames: usize| format!("[{}]", vec!["\"B\""; frames].join(","));
    let tables = |traces: &str| {
        format!("\"traceTable\": {{{traces}}}, \"frameTable\": {{\"B\": \"#00: f (f.rs:1)\"}}")
    };
    let long = |frames| {
        document("live", r#"{"req": 1, "alloc": "A"}"#, &tables(&format!("\"A\": {}", stack(frames))))
    };
    assert!(read(long(10_000)).is_ok());
    assert_eq!(message(&long(10_001)), "traceTable['A']: more than 10000 frames");
    // Few keys, but many frames.
    let traces: Vec<String> = (0..10).map(|n| format!("\"T{n}\": {}", stack(1000))).collect();
    let text = document("live", "", &tables(&traces.join(",")));
    assert!(read(&text).is_ok());
    let error =
        dmd_analyze::read_from(text.as_bytes(), &DumpReadOptions::new().max_entries(1000)).unwrap_err();
    assert_eq!(error.to_string(), "more than 1000 blocks, traces, frames or words");
}

/// A generator that gives the same numbers every time (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

const SAMPLE: &str = r##"{
 "version": 5,
 "invocation": {"dmdEnvVar": "--mode=scan", "mode": "scan"},
 "blockList": [
  {"addr": "7f0000001000", "contents": ["0", "7f0000001000"], "req": 48, "alloc": "A", "reps": ["C", "A"]},
  {"addr": "9000", "req": 5, "slop": 3, "num": 1, "sampled": true}
 ],
 "traceTable": {"A": ["B", "D"], "C": []},
 "frameTable": {"B": "#00: f\t(a\u0041.rs:1)", "D": "#00: ???[/lib +0x10]"},
 "modules": [{"path": "/lib", "bias": "7f00", "start": "7f00", "end": "8f00", "buildId": "ab"}],
 "statistics": {"seconds": 1.5, "allocations": 9, "frees": 7, "reallocations": 0, "temporary": 1},
 "peak": {"bytes": 101, "blocks": 4, "seconds": 0.25, "within": 8192, "stacks": [
  {"alloc": "A", "num": 3, "bytes": 100},
  {"num": 1, "bytes": 1}
 ]},
 "sampling": {"stacks": "partial", "chancePerByte": 0.003}
}"##;

fn analyze_all(bytes: &[u8]) {
    let Ok(dump) = read(bytes) else { return };
    let _ = dump.block_text(0x7f00_0000_1000, &BlockOptions::new()).map(|text| text.to_string());
    let options = AnalyzeOptions::new().ignore_alloc_fns(true);
    let _ = Analysis::new(dump, &options).text(&[]).to_string();
    let at_peak = read(bytes).and_then(|dump| dump.at(DumpTime::Peak));
    let _ = at_peak.map(|dump| Analysis::new(dump, &options).text(&[]).to_string());
    if let (Ok(first), Ok(second)) = (read(SAMPLE), read(bytes)) {
        let _ = Analysis::difference(first, second, &options).map(|a| a.text(&[]).to_string());
    }
}

#[test]
fn damaged_dumps_never_panic() {
    let sample = SAMPLE.as_bytes();
    assert!(read(sample).is_ok());
    for end in 0..sample.len() {
        assert!(read(&sample[..end]).is_err());
    }
    let dark = SAMPLE.replace("scan", "dark-matter");
    let mut random = Random(88172645463325252);
    for round in 0..6000 {
        let mut damaged = if round % 2 == 0 { sample.to_vec() } else { dark.as_bytes().to_vec() };
        for _ in 0..=random.below(3) {
            let at = random.below(damaged.len());
            match random.below(4) {
                0 => damaged[at] ^= 1 << random.below(8),
                1 => damaged[at] = b"0-9\"\\{}[]:,eE.\n/"[random.below(16)],
                2 => {
                    let end = (at + random.below(20)).min(damaged.len());
                    let piece = damaged[at..end].to_vec();
                    let to = random.below(damaged.len());
                    damaged.splice(to..to, piece);
                }
                _ => {
                    let end = (at + random.below(20)).min(damaged.len());
                    damaged.drain(at..end);
                }
            }
        }
        analyze_all(&damaged);
    }
}
