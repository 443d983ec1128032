//! A message as paths and values, so that two answers can be compared field by field.
//!
//! The text that `Debug` gives of a message is read back into a tree; the tree becomes a map. Elements of a
//! list are named by what identifies them (a topic's name, a partition's index), not by their place, since
//! brokers answer in an order of their own.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::str::Chars;

use anyhow::{Context, Result, bail, ensure};

/// A value of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// A number, a text in quotes, `null`.
    Leaf(String),
    /// An array.
    List(Vec<Self>),
    /// A structure with its fields.
    Struct(Vec<(String, Self)>),
}

/// The fields that name an element of a list.
const NAMES: [&str; 19] = [
    "name",
    "topic",
    "topic_name",
    "partition",
    "partition_index",
    "partition_id",
    "index",
    "node_id",
    "broker_id",
    "resource_type",
    "resource_name",
    "api_key",
    "log_dir",
    "batch_index",
    "config_name",
    "group_id",
    "member_id",
    "group_instance_id",
    "key",
];

impl Node {
    /// Reads what `{:?}` printed.
    ///
    /// # Errors
    /// When that is no message.
    pub fn parse(text: &str) -> Result<Self> {
        let mut reader = Reader(text.chars().peekable());
        let node = reader.node().with_context(|| format!("in {text}"))?;
        ensure!(reader.0.next().is_none(), "text behind the message {text}");
        Ok(node)
    }

    /// Every value by its path. `mask` sees the field's name and its value.
    pub fn flatten(&self, mask: &impl Fn(&str, &str) -> String) -> BTreeMap<String, String> {
        let mut out = BTreeMap::new();
        self.collect("", "", mask, &mut out);
        out
    }

    fn collect(
        &self,
        path: &str,
        field: &str,
        mask: &impl Fn(&str, &str) -> String,
        out: &mut BTreeMap<String, String>,
    ) {
        match self {
            Self::Leaf(value) => {
                out.insert(path.to_owned(), mask(field, value));
            }
            Self::Struct(fields) => {
                for (name, value) in fields {
                    let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    value.collect(&path, name, mask, out);
                }
            }
            Self::List(elements) if elements.iter().all(|element| matches!(element, Self::Leaf(_))) => {
                let values: Vec<String> = elements.iter().map(|e| mask(field, e.leaf())).collect();
                out.insert(path.to_owned(), format!("[{}]", values.join(", ")));
            }
            Self::List(elements) => {
                let mut seen: BTreeMap<String, usize> = BTreeMap::new();
                out.insert(format!("{path}.len"), elements.len().to_string());
                for element in elements {
                    let name = element.name(mask);
                    let count = seen.entry(name.clone()).or_default();
                    *count += 1;
                    let again = if *count > 1 { format!("#{count}") } else { String::new() };
                    element.collect(&format!("{path}[{name}{again}]"), field, mask, out);
                }
            }
        }
    }

    fn leaf(&self) -> &str {
        match self {
            Self::Leaf(value) => value,
            _ => "",
        }
    }

    fn name(&self, mask: &impl Fn(&str, &str) -> String) -> String {
        let Self::Struct(fields) = self else { return String::new() };
        let named = fields.iter().filter(|(name, _)| NAMES.contains(&name.as_str()));
        let mut parts: Vec<String> = named.map(|(name, value)| mask(name, value.leaf())).collect();
        // An id names what has no other name.
        if parts.iter().all(|part| part == "\"\"" || part == "null" || part.parse::<i64>().is_ok()) {
            let id = fields.iter().find(|(name, _)| name == "topic_id");
            parts.extend(id.map(|(name, value)| mask(name, value.leaf())));
        }
        parts.join(" ")
    }
}

struct Reader<'a>(Peekable<Chars<'a>>);

impl Reader<'_> {
    fn spaces(&mut self) {
        while self.0.next_if(|c| c.is_whitespace()).is_some() {}
    }

    fn node(&mut self) -> Result<Node> {
        self.spaces();
        match self.0.peek().copied().context("the text ends")? {
            '[' => {
                self.0.next();
                let mut elements = Vec::new();
                while !self.ends_with(']') {
                    elements.push(self.node()?);
                }
                Ok(Node::List(elements))
            }
            '"' => self.quoted().map(Node::Leaf),
            _ => self.word(),
        }
    }

    /// Passes over a comma; whether the closing bracket follows, which is taken, too.
    fn ends_with(&mut self, close: char) -> bool {
        self.spaces();
        self.0.next_if_eq(&',');
        self.spaces();
        self.0.next_if_eq(&close).is_some()
    }

    fn quoted(&mut self) -> Result<String> {
        let mut text = String::new();
        text.extend(self.0.next());
        loop {
            let letter = self.0.next().context("an open quote")?;
            text.push(letter);
            match letter {
                '"' => return Ok(text),
                '\\' => text.extend(self.0.next()),
                _ => {}
            }
        }
    }

    /// A number, an identifier, or an identifier with what it holds.
    fn word(&mut self) -> Result<Node> {
        let mut word = String::new();
        while let Some(letter) = self.0.next_if(|c| !matches!(c, ',' | '}' | ']' | ')' | '{' | '(' | '"')) {
            word.push(letter);
        }
        let word = word.trim_end().to_owned();
        match self.0.peek() {
            Some('"') if word == "b" => self.quoted().map(Node::Leaf),
            Some('(') if word == "Some" => {
                self.0.next();
                let inside = self.node()?;
                ensure!(self.ends_with(')'), "an open bracket");
                Ok(inside)
            }
            Some('{') => {
                self.0.next();
                let mut fields = Vec::new();
                while !self.ends_with('}') {
                    fields.push(self.field()?);
                }
                Ok(Node::Struct(fields))
            }
            Some('(' | '"') => bail!("cannot read what follows {word}"),
            _ if word == "None" => Ok(Node::Leaf("null".to_owned())),
            _ => Ok(Node::Leaf(word)),
        }
    }

    fn field(&mut self) -> Result<(String, Node)> {
        let mut name = String::new();
        while let Some(letter) = self.0.next_if(|c| *c != ':') {
            name.push(letter);
        }
        self.0.next();
        Ok((name, self.node()?))
    }
}
