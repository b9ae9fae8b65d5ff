//! `parser FOLDER ...` parses all JavaScript and TypeScript in folders with oxc, and keeps all trees, as a bundler
//! does. It prints the longest functions and the names that are imported most often.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use oxc_allocator::Allocator;
use oxc_ast::ast::{Function, IdentifierReference, ImportDeclaration, Program};
use oxc_ast_visit::{Visit, walk};
use oxc_parser::Parser;
use oxc_span::{GetSpan, SourceType};
use oxc_syntax::scope::ScopeFlags;

struct Source {
    path: PathBuf,
    text: String,
    kind: SourceType,
}

/// The results of the walk through a module's tree.
#[derive(Default)]
struct Module<'a> {
    imports: Vec<&'a str>,
    names: HashMap<&'a str, u32>,
    longest: Option<(u32, String)>,
}

impl<'a> Visit<'a> for Module<'a> {
    fn visit_import_declaration(&mut self, import: &ImportDeclaration<'a>) {
        self.imports.push(import.source.value.as_str());
        walk::walk_import_declaration(self, import);
    }

    fn visit_identifier_reference(&mut self, identifier: &IdentifierReference<'a>) {
        *self.names.entry(identifier.name.as_str()).or_default() += 1;
    }

    fn visit_function(&mut self, function: &Function<'a>, flags: ScopeFlags) {
        let size = function.span().size();
        if self.longest.as_ref().is_none_or(|(longest, _)| size > *longest) {
            let name = function.id.as_ref().map_or("(anonymous)", |id| id.name.as_str());
            self.longest = Some((size, name.to_owned()));
        }
        walk::walk_function(self, function, flags);
    }
}

fn find(folder: &Path, sources: &mut Vec<Source>) -> io::Result<()> {
    let mut entries: Vec<_> = fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    entries.sort_by_key(fs::DirEntry::path);
    for entry in entries {
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            find(&path, sources)?;
        } else if let Ok(kind) = SourceType::from_path(&path) {
            sources.push(Source { text: fs::read_to_string(&path)?, path, kind });
        }
    }
    Ok(())
}

fn main() -> io::Result<()> {
    let mut sources = Vec::new();
    for folder in std::env::args_os().skip(1) {
        find(folder.as_ref(), &mut sources)?;
    }

    let allocators: Vec<Allocator> = sources.iter().map(|_| Allocator::default()).collect();
    let mut errors = 0;
    let programs: Vec<Program<'_>> = (sources.iter().zip(&allocators))
        .map(|(source, allocator)| {
            let parsed = Parser::new(allocator, &source.text, source.kind).parse();
            errors += parsed.diagnostics.len();
            parsed.program
        })
        .collect();
    let modules: Vec<Module<'_>> = programs
        .iter()
        .map(|program| {
            let mut module = Module::default();
            module.visit_program(program);
            module
        })
        .collect();

    let bytes: usize = sources.iter().map(|source| source.text.len()).sum();
    let imports: usize = modules.iter().map(|module| module.imports.len()).sum();
    let names: usize = modules.iter().map(|module| module.names.len()).sum();
    println!("{} files, {bytes} bytes, {errors} errors, {imports} imports, {names} names", sources.len());
    let mut longest: Vec<_> =
        sources.iter().zip(&modules).filter_map(|(s, m)| Some((m.longest.as_ref()?, s))).collect();
    longest.sort_by_key(|((size, _), _)| std::cmp::Reverse(*size));
    for ((size, name), source) in longest.iter().take(3) {
        println!("{name} in {}: {size} bytes", source.path.display());
    }
    Ok(())
}
