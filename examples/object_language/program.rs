//! The language: lines that define classes, make objects and forget them.
//!
//! ```text
//! class Point x y          a class with two fields
//! let here = Point 3 4     an object; a field is a number, a name or nil
//! repeat 100               runs the lines up to `end` this many times
//! forget here              the name refers to no object any more
//! ```

use anyhow::{Context as _, bail};

/// The action of a line.
#[derive(Debug)]
pub(crate) enum Statement {
    Class { name: String, fields: Vec<String> },
    Let { name: String, class: String, values: Vec<Literal> },
    Forget { name: String },
    Repeat { times: usize, body: Vec<Statement> },
}

/// The value of a field, as it is written in the program.
#[derive(Debug)]
pub(crate) enum Literal {
    Nil,
    Number(f64),
    Name(String),
}

/// Reads a program. Errors contain the number of the line.
pub(crate) fn parse(text: &str) -> anyhow::Result<Vec<Statement>> {
    // The `repeat` blocks around this line: the number of runs of each block, and the statements before the block.
    let mut outer: Vec<(usize, Vec<Statement>)> = Vec::new();
    let mut body = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let place = || format!("line {}: `{}`", number + 1, line.trim());
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [] => {}
            ["class", name, ref fields @ ..] => {
                let fields = fields.iter().map(|field| (*field).to_owned()).collect();
                body.push(Statement::Class { name: name.to_owned(), fields });
            }
            ["let", name, "=", class, ref values @ ..] => {
                let values = values.iter().map(|value| literal(value)).collect();
                body.push(Statement::Let { name: name.to_owned(), class: class.to_owned(), values });
            }
            ["forget", name] => body.push(Statement::Forget { name: name.to_owned() }),
            ["repeat", times] => {
                let times = times.parse().with_context(place)?;
                outer.push((times, std::mem::take(&mut body)));
            }
            ["end"] => {
                let Some((times, before)) = outer.pop() else { bail!("{}: `end` without `repeat`", place()) };
                let inner = std::mem::replace(&mut body, before);
                body.push(Statement::Repeat { times, body: inner });
            }
            _ => bail!("{}: expected class, let, forget, repeat or end", place()),
        }
    }
    if !outer.is_empty() {
        bail!("`repeat` without `end`");
    }
    Ok(body)
}

fn literal(word: &str) -> Literal {
    match word.parse() {
        Ok(number) => Literal::Number(number),
        Err(_) if word == "nil" => Literal::Nil,
        Err(_) => Literal::Name(word.to_owned()),
    }
}
