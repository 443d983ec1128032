//! Writes the modules, structures and defaults, and the table of all messages.

use std::fmt::Write;

use super::model::{Api, Element, Field, Message, Scope};
use super::{emit_decode, emit_encode, emit_random};

/// The code of all messages.
pub(crate) fn emit(apis: &[Api]) -> String {
    let mut out = String::new();
    for api in apis {
        module(&mut out, api, &api.request, "request");
        module(&mut out, api, &api.response, "response");
        let (request, response) = (&api.request.root.name, &api.response.root.name);
        line(&mut out, &format!("impl Request for {request} {{ type Response = {response}; }}\n"));
    }
    table(
        &mut out,
        apis,
        "decode_any",
        "src: &mut Decoder",
        "Result<Box<dyn AnyMessage>, DecodeError>",
        |name| format!("Ok(Box::new({name}::decode(src, version)?))"),
    );
    line(&mut out, "#[cfg(any(test, feature = \"testing\"))]");
    table(
        &mut out,
        apis,
        "random_any",
        "rng: &mut Rng",
        "Result<Box<dyn AnyMessage>, DecodeError>",
        |name| format!("Ok(Box::new({name}::random(rng, version)))"),
    );
    out
}

/// Writes one line; writing to a `String` cannot fail.
pub(crate) fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

fn table(
    out: &mut String,
    apis: &[Api],
    name: &str,
    source: &str,
    result: &str,
    arm: impl Fn(&str) -> String,
) {
    let about = match name {
        "decode_any" => "Reads the request or response of `api_key` in `version`.",
        _ => "A random request or response of `api_key` that `version` can carry.",
    };
    line(
        out,
        &format!("/// {about}\n///\n/// # Errors\n/// `UnknownApiKey` if no message is defined for it."),
    );
    line(out, &format!("pub fn {name}(api_key: i16, version: i16, kind: Kind, {source}) -> {result} {{"));
    line(out, "    match (api_key, kind) {");
    for api in apis {
        for (kind, message) in [("Request", &api.request), ("Response", &api.response)] {
            line(out, &format!("        ({}, Kind::{kind}) => {},", api.key, arm(&message.root.name)));
        }
    }
    line(out, "        _ => Err(DecodeError::UnknownApiKey(api_key)),\n    }\n}\n");
}

fn module(out: &mut String, api: &Api, message: &Message, kind: &str) {
    let root = &message.root.name;
    let module = snake_case(root);
    line(out, &format!("pub use {module}::{root};\n"));
    line(out, &format!("/// The {kind} of {} (key {}), versions {}.", api.name, api.key, api.versions));
    line(out, &format!("pub mod {module} {{\n    use super::prelude::*;\n"));
    for (at, scope) in Scope::of(api, message).iter().enumerate() {
        structure(out, scope);
        if at == 0 {
            root_impl(out, api, message, scope);
        } else {
            line(out, &format!("impl {} {{", scope.structure.name));
        }
        emit_decode::emit(out, scope);
        emit_encode::emit(out, scope);
        emit_random::emit(out, scope);
        line(out, "}\n");
    }
    line(out, "}\n");
}

/// The trait of a whole message, and the public functions that check the version.
fn root_impl(out: &mut String, api: &Api, message: &Message, scope: &Scope<'_>) {
    let (name, key) = (&scope.structure.name, api.key);
    let (first, last) = (api.versions.first, api.versions.last);
    let request = name == &api.request.root.name;
    let kind = if request { "Request" } else { "Response" };
    debug_assert!(message.root.name == *name);
    let text = format!(
        r#"impl Message for {name} {{
    const API_KEY: i16 = {key};
    const KIND: Kind = Kind::{kind};
    const NAME: &'static str = "{name}";
    const VERSIONS: RangeInclusive<i16> = {first}..={last};

    fn decode(src: &mut Decoder, version: i16) -> Result<Self, DecodeError> {{
        Self::decode(src, version)
    }}

    fn encode(&self, dst: &mut Encoder, version: i16) -> Result<(), EncodeError> {{
        Self::encode(self, dst, version)
    }}

    #[cfg(any(test, feature = "testing"))]
    fn random(rng: &mut Rng, version: i16) -> Self {{
        Self::random_fields(rng, version)
    }}
}}

impl {name} {{
    /// Reads the message in `version`; bytes behind it are left.
    ///
    /// # Errors
    /// `UnsupportedVersion` outside {first} to {last}; else what is wrong with the bytes.
    pub fn decode(src: &mut Decoder, version: i16) -> Result<Self, DecodeError> {{
        if !({first}..={last}).contains(&version) {{
            return Err(DecodeError::UnsupportedVersion {{ message: Self::NAME, version }});
        }}
        Self::decode_fields(src, version)
    }}

    /// Writes the message in `version`.
    ///
    /// # Errors
    /// `UnsupportedVersion` outside {first} to {last}; else the field that the version cannot carry.
    pub fn encode(&self, dst: &mut Encoder, version: i16) -> Result<(), EncodeError> {{
        if !({first}..={last}).contains(&version) {{
            return Err(EncodeError::UnsupportedVersion {{ message: Self::NAME, version }});
        }}
        self.encode_fields(dst, version)
    }}
"#
    );
    line(out, &text);
}

fn structure(out: &mut String, scope: &Scope<'_>) {
    let structure = scope.structure;
    line(out, &format!("/// `{}`, versions {}.", structure.name, scope.versions));
    let derivable = structure.fields.iter().all(|field| field.default_is_natural());
    let default = if derivable { "Default, " } else { "" };
    line(out, &format!("#[derive(Clone, Debug, {default}PartialEq)]\npub struct {} {{", structure.name));
    for field in &structure.fields {
        line(out, &format!("    /// {}\n    pub {}: {},", about(field), field.ident(), field.rust_type()));
    }
    line(out, "}\n");
    if !derivable {
        line(
            out,
            &format!("impl Default for {} {{\n    fn default() -> Self {{\n        Self {{", structure.name),
        );
        for field in &structure.fields {
            line(out, &format!("            {}: {},", field.ident(), field.default_value()));
        }
        line(out, "        }\n    }\n}\n");
    }
}

/// One line of documentation: everything the definition says.
fn about(field: &Field) -> String {
    let kind = match &field.element {
        Element::Struct(name) => format!("[`{name}`]"),
        other => format!("{other:?}").to_lowercase(),
    };
    let array = if field.array { "array of " } else { "" };
    let mut text = format!("`{}`: {array}{kind}, versions {}", field.name, field.versions);
    if let Some(nullable) = field.nullable {
        let _ = write!(text, ", nullable in {nullable}");
    }
    if let Some(tag) = field.tag {
        let _ = write!(text, ", tag {tag}");
    }
    if let Some(default) = &field.default {
        let _ = write!(text, ", default {default}");
    }
    if field.ignorable {
        text.push_str(", ignorable");
    }
    text + "."
}

impl Field {
    /// The name of the field in Rust.
    pub(crate) fn ident(&self) -> String {
        let name = snake_case(&self.name);
        if matches!(name.as_str(), "type" | "match") { format!("r#{name}") } else { name }
    }

    /// The type of an element in Rust.
    pub(crate) fn element_type(&self) -> &str {
        match &self.element {
            Element::Bool => "bool",
            Element::Int8 => "i8",
            Element::Int16 => "i16",
            Element::Uint16 => "u16",
            Element::Int32 => "i32",
            Element::Int64 => "i64",
            Element::Float64 => "f64",
            Element::Uuid => "TopicId",
            Element::String => "Str",
            Element::Bytes | Element::Records => "Bytes",
            Element::Struct(name) => name,
        }
    }

    fn rust_type(&self) -> String {
        let mut text = self.element_type().to_owned();
        if self.array {
            text = format!("Vec<{text}>");
        }
        if self.nullable.is_some() { format!("Option<{text}>") } else { text }
    }

    fn default_is_null(&self) -> bool {
        self.default.as_deref() == Some("null")
    }

    /// Whether the default is what `Default` gives.
    fn default_is_natural(&self) -> bool {
        if self.nullable.is_some() { self.default_is_null() } else { self.default.is_none() }
    }

    /// The default as an expression.
    pub(crate) fn default_value(&self) -> String {
        if self.default_is_null() {
            return "None".to_owned();
        }
        let value = match (&self.element, &self.default) {
            _ if self.array => "Vec::new()".to_owned(),
            (Element::Struct(name), _) => format!("{name}::default()"),
            (Element::Uuid, _) => "TopicId::ZERO".to_owned(),
            (Element::String, _) => "Str::EMPTY".to_owned(),
            (Element::Bytes | Element::Records, _) => "Bytes::new()".to_owned(),
            (_, Some(value)) => value.clone(),
            (Element::Bool, None) => "false".to_owned(),
            (Element::Float64, None) => "0.0".to_owned(),
            (_, None) => "0".to_owned(),
        };
        if self.nullable.is_some() { format!("Some({value})") } else { value }
    }

    /// An expression that is true if the field of `self` differs from its default.
    pub(crate) fn differs_from_default(&self) -> String {
        let place = format!("self.{}", self.ident());
        if self.default_is_null() {
            return format!("{place}.is_some()");
        }
        let empty = self.array || matches!(self.element, Element::String | Element::Bytes | Element::Records);
        match (&self.element, &self.default) {
            _ if empty && self.nullable.is_some() => {
                format!("{place}.as_ref().is_none_or(|x| !x.is_empty())")
            }
            _ if empty => format!("!{place}.is_empty()"),
            (Element::Bool, Some(value)) if value == "true" => format!("!{place}"),
            (Element::Bool, _) => place,
            _ => format!("{place} != {}", self.default_value()),
        }
    }
}

/// Whether `code` uses the variable `name`.
pub(crate) fn uses(code: &str, name: &str) -> bool {
    code.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').any(|word| word == name)
}

/// `TransactionalId` to `transactional_id`; an abbreviation is one word.
pub(crate) fn snake_case(name: &str) -> String {
    let letters: Vec<char> = name.replace("KRaft", "Kraft").chars().collect();
    let mut text = String::new();
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| letters.get(at));
        let after = letters.get(at + 1);
        let starts_word = letter.is_ascii_uppercase()
            && before.is_some_and(|before| {
                !before.is_ascii_uppercase() || after.is_some_and(char::is_ascii_lowercase)
            });
        if starts_word {
            text.push('_');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_snake_case() {
        for (name, snake) in [
            ("TransactionalId", "transactional_id"),
            ("isKRaftController", "is_kraft_controller"),
            ("V3AndBelowTopics", "v3_and_below_topics"),
            ("HMACKey", "hmac_key"),
            ("timeoutMs", "timeout_ms"),
        ] {
            assert_eq!(snake_case(name), snake);
        }
    }

    #[test]
    fn a_variable_is_used_where_it_stands_as_a_word() {
        assert!(uses("if version >= 3", "version"));
        assert!(!uses("let min_version = src.i16()?;", "version"));
    }
}
