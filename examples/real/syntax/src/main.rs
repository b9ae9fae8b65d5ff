//! `syntax FOLDER ...` parses all Rust sources in folders with rust-analyzer's parser, and keeps the trees, as an
//! editor does. It makes an index of the functions by name.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use ra_ap_syntax::ast::{self, AstNode, HasDocComments, HasName, HasVisibility};
use ra_ap_syntax::{AstToken, Edition, Parse, SourceFile};

struct File {
    path: PathBuf,
    parsed: Parse<SourceFile>,
}

/// A function in the index.
struct Symbol {
    file: usize,
    start: u32,
    public: bool,
    parameters: Vec<String>,
    documentation: String,
}

impl Symbol {
    fn new(file: usize, function: &ast::Fn) -> Self {
        let parameters = function.param_list().into_iter().flat_map(|list| list.params());
        let types = parameters.filter_map(|parameter| Some(parameter.ty()?.syntax().text().to_string()));
        let comments =
            function.doc_comments().map(|comment| comment.text().trim_start_matches("///").to_owned());
        Self {
            file,
            start: function.syntax().text_range().start().into(),
            public: function.visibility().is_some(),
            parameters: types.collect(),
            documentation: comments.collect::<Vec<_>>().join("\n"),
        }
    }
}

fn find(folder: &Path, files: &mut Vec<File>) -> io::Result<()> {
    let mut entries: Vec<_> = fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    entries.sort_by_key(fs::DirEntry::path);
    for entry in entries {
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            find(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let parsed = SourceFile::parse(&fs::read_to_string(&path)?, Edition::CURRENT);
            files.push(File { path, parsed });
        }
    }
    Ok(())
}

fn main() -> io::Result<()> {
    let mut files = Vec::new();
    for folder in std::env::args_os().skip(1) {
        find(folder.as_ref(), &mut files)?;
    }

    let mut index: HashMap<String, Vec<Symbol>> = HashMap::new();
    for (number, file) in files.iter().enumerate() {
        for function in file.parsed.tree().syntax().descendants().filter_map(ast::Fn::cast) {
            if let Some(name) = function.name() {
                index.entry(name.text().to_string()).or_default().push(Symbol::new(number, &function));
            }
        }
    }

    let errors: usize = files.iter().map(|file| file.parsed.errors().len()).sum();
    let symbols = || index.values().flatten();
    let (public, documented) = (
        symbols().filter(|symbol| symbol.public).count(),
        symbols().filter(|symbol| !symbol.documentation.is_empty()).count(),
    );
    println!(
        "{} files, {errors} errors, {} functions, {public} public, {documented} documented",
        files.len(),
        symbols().count()
    );
    let mut names: Vec<_> = index.iter().collect();
    names.sort_by_key(|(name, symbols)| (std::cmp::Reverse(symbols.len()), *name));
    for (name, symbols) in names.iter().take(3) {
        let first =
            symbols.iter().min_by_key(|symbol| (symbol.file, symbol.start)).expect("a name has a function");
        println!(
            "{name}({}): {} functions, the first in {}",
            first.parameters.join(", "),
            symbols.len(),
            files[first.file].path.display()
        );
    }
    Ok(())
}
