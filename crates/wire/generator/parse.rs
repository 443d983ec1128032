//! Reads one definition file. Every error names its line.

use super::model::{Api, Element, Field, Message, Structure, Versions};

type Result<T> = std::result::Result<T, String>;

/// A line that is not empty: its number from 1, its depth (two spaces each), its text.
struct Line<'a> {
    number: usize,
    depth: usize,
    text: &'a str,
}

impl Line<'_> {
    fn error<T>(&self, what: &str) -> Result<T> {
        Err(format!("line {}: {what}: {:?}", self.number, self.text))
    }
}

struct Lines<'a> {
    lines: std::iter::Peekable<std::vec::IntoIter<Line<'a>>>,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Result<Self> {
        let mut lines = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let text = line.trim();
            let spaces = line.len() - line.trim_start().len();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let line = Line { number: at + 1, depth: spaces / 2, text };
            if spaces % 2 == 1 {
                return line.error("odd indentation");
            }
            lines.push(line);
        }
        Ok(Self { lines: lines.into_iter().peekable() })
    }

    /// The next line if it is at `depth`.
    fn next_at(&mut self, depth: usize) -> Option<Line<'a>> {
        self.lines.next_if(|line| line.depth == depth)
    }

    /// The next line, which must begin with the word `key`; gives the rest.
    fn keyword(&mut self, key: &str) -> Result<&'a str> {
        match self.lines.next() {
            Some(line) => match line.text.strip_prefix(key) {
                Some(rest) if line.depth == 0 => Ok(rest.trim()),
                _ => line.error(&format!("expected `{key}`")),
            },
            None => Err(format!("expected `{key}` before the end")),
        }
    }
}

/// Reads the definition of one api.
pub(crate) fn api(text: &str) -> Result<Api> {
    let mut lines = Lines::new(text)?;
    let (key, name) = lines.keyword("api")?.split_once(' ').ok_or("`api` needs a key and a name")?;
    let key = key.parse().map_err(|_| format!("bad api key {key:?}"))?;
    let valid = versions(lines.keyword("versions")?)?;
    let flexible = match lines.lines.peek() {
        Some(line) if line.text.starts_with("flexible") => {
            Some(versions(lines.keyword("flexible")?)?.intersect(valid))
        }
        _ => None,
    };
    lines.keyword("request")?;
    let tagged = flexible.unwrap_or(Versions { first: i16::MAX, last: i16::MAX });
    let request = message(&mut lines, format!("{name}Request"), tagged)?;
    lines.keyword("response")?;
    let response = message(&mut lines, format!("{name}Response"), tagged)?;
    match lines.lines.next() {
        Some(line) => line.error("unexpected"),
        None => Ok(Api { key, name: name.to_owned(), versions: valid, flexible, request, response }),
    }
}

fn message(lines: &mut Lines<'_>, name: String, flexible: Versions) -> Result<Message> {
    let mut nested = Vec::new();
    let fields = fields(lines, 1, &mut nested)?;
    while let Some(line) = lines.next_at(1) {
        let Some(name) = line.text.strip_prefix("struct ") else {
            return line.error("expected a field or `struct`");
        };
        let at = nested.len();
        let fields = self::fields(lines, 2, &mut nested)?;
        nested.insert(at, Structure { name: name.trim().to_owned(), fields });
    }
    let message = Message { root: Structure { name, fields }, nested };
    check(&message, flexible)?;
    Ok(message)
}

/// Reads the fields at `depth`; structures defined below them go to `nested`.
fn fields(lines: &mut Lines<'_>, depth: usize, nested: &mut Vec<Structure>) -> Result<Vec<Field>> {
    let mut fields = Vec::new();
    while let Some(line) =
        lines.lines.next_if(|line| line.depth == depth && !line.text.starts_with("struct "))
    {
        let field = field(&line)?;
        let at = nested.len();
        let inner = self::fields(lines, depth + 1, nested)?;
        match &field.element {
            Element::Struct(name) if !inner.is_empty() => {
                nested.insert(at, Structure { name: name.clone(), fields: inner });
            }
            _ if !inner.is_empty() => return line.error("only a structure has fields"),
            _ => {}
        }
        fields.push(field);
    }
    Ok(fields)
}

/// `Name: type [versions] [nullable versions] [tag n] [= default] [ignorable]`
fn field(line: &Line<'_>) -> Result<Field> {
    let Some((name, rest)) = line.text.split_once(": ") else { return line.error("expected `Name: type`") };
    let mut words = rest.split_whitespace();
    let kind = words.next().unwrap_or_default();
    let (kind, always_nullable) = kind.strip_suffix('?').map_or((kind, false), |kind| (kind, true));
    let (kind, array) = kind.strip_prefix("[]").map_or((kind, false), |kind| (kind, true));
    let Some(element) = element(kind) else { return line.error("unknown type") };
    let mut field = Field {
        name: name.to_owned(),
        element,
        array,
        versions: Versions::ALL,
        nullable: None,
        tag: None,
        default: None,
        ignorable: false,
    };
    while let Some(word) = words.next() {
        let mut argument = || words.next().unwrap_or_default();
        match word {
            "nullable" => field.nullable = Some(versions(argument())?),
            "ignorable" => field.ignorable = true,
            "=" => field.default = Some(argument().to_owned()),
            "tag" => match argument().parse() {
                Ok(tag) => field.tag = Some(tag),
                Err(_) => return line.error("bad tag"),
            },
            word => {
                field.versions = versions(word).map_err(|error| format!("line {}: {error}", line.number))?
            }
        }
    }
    if always_nullable {
        field.nullable = Some(field.versions);
    }
    if field.default.as_deref() == Some("null") && field.nullable != Some(field.versions) {
        return line.error("a default of null needs a field that is always nullable");
    }
    Ok(field)
}

fn element(kind: &str) -> Option<Element> {
    Some(match kind {
        "bool" => Element::Bool,
        "int8" => Element::Int8,
        "int16" => Element::Int16,
        "uint16" => Element::Uint16,
        "int32" => Element::Int32,
        "int64" => Element::Int64,
        "float64" => Element::Float64,
        "uuid" => Element::Uuid,
        "string" => Element::String,
        "bytes" => Element::Bytes,
        "records" => Element::Records,
        name if name.starts_with(|first: char| first.is_ascii_uppercase()) => {
            Element::Struct(name.to_owned())
        }
        _ => return None,
    })
}

/// `3`, `3-5` or `3+`.
fn versions(text: &str) -> Result<Versions> {
    let number = |text: &str| text.parse::<i16>().map_err(|_| format!("bad versions {text:?}"));
    let versions = if let Some(first) = text.strip_suffix('+') {
        Versions { first: number(first)?, last: i16::MAX }
    } else if let Some((first, last)) = text.split_once('-') {
        Versions { first: number(first)?, last: number(last)? }
    } else {
        Versions { first: number(text)?, last: number(text)? }
    };
    if versions.is_empty() { Err(format!("bad versions {text:?}")) } else { Ok(versions) }
}

/// Every structure named is there, once; tags of a structure differ and need flexible versions.
fn check(message: &Message, flexible: Versions) -> Result<()> {
    for structure in std::iter::once(&message.root).chain(&message.nested) {
        let same = message.nested.iter().filter(|other| other.name == structure.name).count();
        if same > 1 {
            return Err(format!("{} defines {} twice", message.root.name, structure.name));
        }
        let mut tags: Vec<_> = structure.fields.iter().filter_map(|field| field.tag).collect();
        let count = tags.len();
        tags.sort_unstable();
        tags.dedup();
        if tags.len() != count {
            return Err(format!("{} uses a tag twice", structure.name));
        }
        for field in &structure.fields {
            if field.tag.is_some() && field.versions.first < flexible.first {
                return Err(format!("{}: a tagged field needs flexible versions", field.name));
            }
            if let Element::Struct(name) = &field.element
                && message.structure(name).is_none()
            {
                return Err(format!("{}: no structure {name}", structure.name));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "api 7 Some\nversions 0-9\nflexible 6+\nrequest\n";

    fn request(fields: &str) -> Result<Message> {
        api(&format!("{HEAD}{fields}\nresponse\n  ErrorCode: int16\n")).map(|api| api.request)
    }

    fn only_field(text: &str) -> Field {
        request(&format!("  {text}")).unwrap().root.fields.remove(0)
    }

    #[test]
    fn a_field_has_all_that_its_line_says() {
        let field = only_field("ClusterId: string? 6+ tag 3 = null ignorable");
        let versions = Versions { first: 6, last: i16::MAX };
        let expected = Field {
            name: "ClusterId".to_owned(),
            element: Element::String,
            array: false,
            versions,
            nullable: Some(versions),
            tag: Some(3),
            default: Some("null".to_owned()),
            ignorable: true,
        };
        assert_eq!(field, expected);
        let field = only_field("Name: []int32 2-7 nullable 3+");
        assert_eq!((field.array, field.versions), (true, Versions { first: 2, last: 7 }));
        assert_eq!(field.nullable, Some(Versions { first: 3, last: i16::MAX }));
        assert_eq!(only_field("Name: bool 4").versions, Versions { first: 4, last: 4 });
        assert_eq!(only_field("Name: bool").versions, Versions::ALL);
    }

    #[test]
    fn structures_are_found_inline_and_shared() {
        let message = request(
            "  A: []Outer\n    B: Inner 1+\n      C: int8\n  D: []Shared\n  struct Shared\n    E: Inner\n  # end\n",
        )
        .unwrap();
        let names: Vec<_> = message.nested.iter().map(|structure| structure.name.as_str()).collect();
        assert_eq!(names, ["Outer", "Inner", "Shared"]);
        assert_eq!(message.root.fields.len(), 2);
    }

    #[test]
    fn mistakes_are_refused() {
        for (fields, expected) in [
            ("  A: int32 x", "bad versions"),
            ("  A: int32 5-3", "bad versions"),
            ("  A: text", "unknown type"),
            ("  A int32", "expected `Name: type`"),
            ("   A: int32", "odd indentation"),
            ("  A: int32\n    B: int8", "only a structure has fields"),
            ("  A: Missing", "no structure Missing"),
            ("  A: B\n    C: int8\n  D: B\n    C: int8", "defines B twice"),
            ("  A: int8 6+ tag 0\n  B: int8 6+ tag 0", "uses a tag twice"),
            ("  A: int8 tag x", "bad tag"),
            ("  A: int8 4 tag 0", "needs flexible versions"),
            ("  A: string nullable 2+ = null", "a default of null needs"),
            ("    A: int8", "expected `response`"),
        ] {
            let error = request(fields).unwrap_err();
            assert!(error.contains(expected), "{fields:?}: {error}");
        }
        assert!(api("api x Some\n").unwrap_err().contains("bad api key"));
        assert!(api("api 1 Some\nrequest\n").unwrap_err().contains("expected `versions`"));
        assert!(api(HEAD).unwrap_err().contains("expected `response`"));
    }
}
