//! Finds out which modules of a crate use which other modules, from the tokens of their files.
//!
//! An arrow is a path that starts with `crate`, `$crate` or `super`, in a `use` line, in a body, or in a macro. It
//! connects two modules of one folder: the module that contains the path (in its own file or below), and the module
//! that contains the item at the end of the path. A name that a module re-exports counts for the module from which it
//! comes. Paths between a module and its own folder are not arrows, and modules under `#[cfg(test)]` do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// Maps a module (`a::b`) to the modules of the same folder that it uses, each with the position of one use.
pub(crate) type Arrows = BTreeMap<String, BTreeMap<String, String>>;

/// The arrows between the modules of the crate in `src`.
pub(crate) fn of_crate(src: &Path) -> Arrows {
    let files: Vec<_> = super::files(src, ".rs").into_iter().map(|path| File::read(src, &path)).collect();
    let mut names =
        Names { modules: files.iter().map(|file| file.module.clone()).collect(), ..Names::default() };
    // Read the files twice, since a name may come through another module, which this loop reads later.
    for file in files.iter().chain(&files) {
        names.read_exports(&file.tokens, &file.module);
    }
    let mut arrows = Arrows::new();
    for file in files.iter().filter(|file| !file.module.is_empty()) {
        arrows.entry(file.module.join("::")).or_default();
        names.paths_in(&file.tokens, &file.module, &mut |to, line| {
            let same = file.module.iter().zip(&to).take_while(|(a, b)| a == b).count();
            if same < file.module.len() && same < to.len() {
                let place = format!("{}:{line}", file.name);
                let from = arrows.entry(file.module[..=same].join("::")).or_default();
                from.entry(to[..=same].join("::")).or_insert(place);
            }
        });
    }
    arrows
}

/// The groups of modules that use each other in a cycle.
pub(crate) fn cycles(arrows: &Arrows) -> BTreeSet<BTreeSet<String>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        arrows.keys().map(|module| (module.as_str(), reached_from(module, arrows))).collect();
    let in_cycles = reached.iter().filter(|(module, others)| others.contains(*module));
    in_cycles
        .map(|(module, others)| {
            let back =
                others.iter().filter(|other| reached.get(*other).is_some_and(|back| back.contains(module)));
            back.map(|other| (*other).to_owned()).collect()
        })
        .collect()
}

fn reached_from<'a>(module: &str, arrows: &'a Arrows) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = vec![module];
    while let Some(next) = open.pop() {
        for to in arrows.get(next).into_iter().flat_map(BTreeMap::keys) {
            if reached.insert(to.as_str()) {
                open.push(to);
            }
        }
    }
    reached
}

struct File {
    name: String,
    /// The path of the module; `[]` for the crate's root.
    module: Vec<String>,
    tokens: Vec<TokenTree>,
}

impl File {
    fn read(src: &Path, path: &Path) -> Self {
        let text = fs::read_to_string(path).expect("a source file can be read");
        let relative = path.strip_prefix(src).expect("the file is in the crate");
        let mut module: Vec<String> =
            relative.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
        if module.len() == 1 && ["lib", "main"].contains(&module[0].as_str()) {
            module.clear();
        }
        let tokens: TokenStream = text.parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self { name: relative.display().to_string(), module, tokens: tokens.into_iter().collect() }
    }
}

/// The modules to which the names of a crate belong.
#[derive(Default)]
struct Names {
    modules: BTreeSet<Vec<String>>,
    /// Maps a name that a module imports to the module from which the name comes.
    exports: BTreeMap<Vec<String>, Vec<String>>,
}

impl Names {
    /// Reads the `use` lines of a module and of its inline modules, and its exported macros.
    fn read_exports(&mut self, tokens: &[TokenTree], module: &[String]) {
        let mut exported = false;
        for (at, token) in tokens.iter().enumerate() {
            match token {
                TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket => {
                    exported |= group.to_string().contains("macro_export");
                }
                TokenTree::Group(body) if is_inline_module(&tokens[..at]) => {
                    let inner = [module, &[tokens[at - 1].to_string()]].concat();
                    self.read_exports(&stream(body), &inner);
                }
                // A `use` line, not the `use<..>` of a type.
                TokenTree::Ident(word) if word == "use" && !is_punct(tokens.get(at + 1), '<') => {
                    for (path, name) in trees(&tokens[at + 1..]) {
                        let to = self.follow(&path, module);
                        if !to.is_empty() && to != module {
                            self.exports.insert([module, &[name]].concat(), to);
                        }
                    }
                }
                TokenTree::Ident(word) if word == "macro_rules" && exported => {
                    self.exports.insert(vec![tokens[at + 2].to_string()], module.to_vec());
                    exported = false;
                }
                _ => {}
            }
        }
    }

    /// The module to which a path in `module` leads; `[]` if it leads out of the crate or to its root.
    fn follow(&self, path: &[String], module: &[String]) -> Vec<String> {
        let mut at = module.to_vec();
        for (index, name) in path.iter().enumerate() {
            match name.as_str() {
                "crate" => at.clear(),
                "super" => drop(at.pop()),
                "self" => {}
                _ => {
                    let next = [&at[..], std::slice::from_ref(name)].concat();
                    if let Some(origin) = self.exports.get(&next) {
                        at.clone_from(origin);
                    } else if self.modules.contains(&next) || self.has_inside(&next) {
                        at = next;
                    } else if index == 0 {
                        return Vec::new();
                    } else {
                        break;
                    }
                }
            }
        }
        at
    }

    /// Whether `module` is an inline module with its own names.
    fn has_inside(&self, module: &[String]) -> bool {
        self.exports.range(module.to_vec()..).next().is_some_and(|(name, _)| name.starts_with(module))
    }

    /// Calls `each` with every module to which a path in `tokens` leads, and with the line.
    fn paths_in(&self, tokens: &[TokenTree], module: &[String], each: &mut dyn FnMut(Vec<String>, usize)) {
        for (at, token) in tokens.iter().enumerate() {
            match token {
                TokenTree::Group(body) if is_inline_module(&tokens[..at]) => {
                    let tokens_before = &tokens[..at - 2];
                    let inner = [module, &[tokens[at - 1].to_string()]].concat();
                    let body = if is_for_tests(tokens_before) { Vec::new() } else { stream(body) };
                    self.paths_in(&body, &inner, each);
                }
                TokenTree::Group(group) => self.paths_in(&stream(group), module, each),
                TokenTree::Ident(word) if (word == "crate" || word == "super") && !goes_on(&tokens[..at]) => {
                    for (path, _) in trees(&tokens[at..]) {
                        each(self.follow(&path, module), word.span().start().line);
                    }
                }
                _ => {}
            }
        }
    }
}

/// The paths of a tree like `use a::{b, c as d}`, each with the name that it imports. Ignores tokens after the tree.
fn trees(tokens: &[TokenTree]) -> Vec<(Vec<String>, String)> {
    let mut path: Vec<String> = Vec::new();
    let mut at = 0;
    loop {
        match tokens.get(at) {
            Some(TokenTree::Ident(name)) => path.push(name.to_string()),
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                let inner = stream(group);
                let inner = inner.split(|token| is_punct(Some(token), ',')).flat_map(trees);
                return inner.map(|(rest, name)| ([&path[..], &rest].concat(), name)).collect();
            }
            _ => {}
        }
        if !is_separator(&tokens[(at + 1).min(tokens.len())..]) {
            break;
        }
        at += 3;
    }
    let name = match tokens.get(at + 1..at + 3) {
        Some([TokenTree::Ident(word), TokenTree::Ident(name)]) if word == "as" => Some(name.to_string()),
        _ => path.iter().rfind(|name| *name != "self").cloned(),
    };
    name.map(|name| (path, name)).into_iter().collect()
}

fn stream(group: &proc_macro2::Group) -> Vec<TokenTree> {
    group.stream().into_iter().collect()
}

/// Whether `before` ends with `mod name`.
fn is_inline_module(before: &[TokenTree]) -> bool {
    matches!(before, [.., TokenTree::Ident(word), TokenTree::Ident(_)] if word == "mod")
}

/// Whether `before` ends with a name and `::`, so that the next token continues a path.
fn goes_on(before: &[TokenTree]) -> bool {
    let [name @ .., _, _] = before else { return false };
    is_separator(&before[before.len() - 2..]) && matches!(name.last(), Some(TokenTree::Ident(_)))
}

/// Whether the attributes at the end of `before` contain `cfg(test)`.
fn is_for_tests(before: &[TokenTree]) -> bool {
    let pairs = before.rchunks(2).take_while(|pair| is_punct(pair.first(), '#'));
    pairs.into_iter().any(|pair| pair[1].to_string().replace(' ', "") == "[cfg(test)]")
}

fn is_separator(tokens: &[TokenTree]) -> bool {
    is_punct(tokens.first(), ':') && is_punct(tokens.get(1), ':')
}

fn is_punct(token: Option<&TokenTree>, wanted: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == wanted)
}
