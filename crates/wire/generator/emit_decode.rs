//! Writes the function that reads a structure.

use super::emit::{line, uses};
use super::model::{Condition, Element, Field, Scope, Versions};

/// Writes `decode_fields`.
pub(crate) fn emit(out: &mut String, scope: &Scope<'_>) {
    let mut body = String::new();
    for field in &scope.structure.fields {
        statement(&mut body, scope, field);
    }
    tagged(&mut body, scope);
    let idents: Vec<_> = scope.structure.fields.iter().map(Field::ident).collect();
    line(&mut body, &format!("        Ok(Self {{ {} }})", idents.join(", ")));

    let flexible = flexible_line(scope, &body);
    let version = if uses(&body, "version") || !flexible.is_empty() { "version" } else { "_version" };
    line(
        out,
        &format!("    fn decode_fields(src: &mut Decoder, {version}: i16) -> Result<Self, DecodeError> {{"),
    );
    out.push_str(&flexible);
    out.push_str(&body);
    line(out, "    }\n");
}

/// The line that tells whether the version is flexible, if `body` asks.
pub(crate) fn flexible_line(scope: &Scope<'_>, body: &str) -> String {
    match &scope.flexible {
        Condition::If(test) if uses(body, "flexible") => format!("        let flexible = {test};\n"),
        _ => String::new(),
    }
}

/// The expression that tells whether the version is flexible.
pub(crate) fn flexible(scope: &Scope<'_>) -> &'static str {
    match scope.flexible {
        Condition::Always => "true",
        Condition::Never => "false",
        Condition::If(_) => "flexible",
    }
}

/// The versions of a field among those of its structure.
pub(crate) fn versions_here(scope: &Scope<'_>, field: &Field) -> Versions {
    field.versions.intersect(scope.versions)
}

fn statement(body: &mut String, scope: &Scope<'_>, field: &Field) {
    let ident = field.ident();
    let default = field.default_value();
    if field.tag.is_some() {
        line(body, &format!("        let mut {ident} = {default};"));
        return;
    }
    let value = value(scope, field);
    match field.versions.within(scope.versions) {
        Condition::Always => line(body, &format!("        let {ident} = {value};")),
        Condition::Never => line(body, &format!("        let {ident} = {default};")),
        Condition::If(test) => {
            line(body, &format!("        let {ident} = if {test} {{ {value} }} else {{ {default} }};"));
        }
    }
}

/// The expression that reads a field which the version has.
fn value(scope: &Scope<'_>, field: &Field) -> String {
    let nullable = field.nullable.map(|nullable| nullable.within(versions_here(scope, field)));
    match nullable {
        None => read(scope, field, false),
        Some(Condition::Always) => read(scope, field, true),
        Some(Condition::Never) => format!("Some({})", read(scope, field, false)),
        Some(Condition::If(test)) => {
            let (null, plain) = (read(scope, field, true), read(scope, field, false));
            format!("if {test} {{ {null} }} else {{ Some({plain}) }}")
        }
    }
}

fn read(scope: &Scope<'_>, field: &Field, nullable: bool) -> String {
    let null = if nullable { "nullable_" } else { "" };
    let flexible = flexible(scope);
    if field.array {
        let min_size = min_size(scope, field);
        let element = match &field.element {
            Element::Struct(name) => format!("|src| {name}::decode_fields(src, version)"),
            Element::String => format!("|src| src.string({flexible})"),
            Element::Bytes | Element::Records => format!("|src| src.bytes({flexible})"),
            _ => format!("Decoder::{}", method(&field.element)),
        };
        return format!("src.{null}array({flexible}, {min_size}, {element})?");
    }
    match &field.element {
        Element::Struct(name) if nullable => {
            format!("src.nullable_struct(|src| {name}::decode_fields(src, version))?")
        }
        Element::Struct(name) => format!("{name}::decode_fields(src, version)?"),
        Element::String => format!("src.{null}string({flexible})?"),
        Element::Bytes | Element::Records => format!("src.{null}bytes({flexible})?"),
        element => format!("src.{}()?", method(element)),
    }
}

/// The name of what reads a value of fixed size.
pub(crate) fn method(element: &Element) -> &'static str {
    match element {
        Element::Bool => "bool",
        Element::Int8 => "i8",
        Element::Int16 => "i16",
        Element::Uint16 => "u16",
        Element::Int32 => "i32",
        Element::Int64 => "i64",
        Element::Float64 => "f64",
        Element::Uuid => "uuid",
        Element::String => "string",
        Element::Bytes => "bytes",
        Element::Records => "records",
        Element::Struct(_) => "struct",
    }
}

/// The smallest size of an element as an expression over the version.
fn min_size(scope: &Scope<'_>, field: &Field) -> String {
    let here = versions_here(scope, field);
    let mut ranges: Vec<(Versions, usize)> = Vec::new();
    for version in here.first..=here.last {
        let size = scope.min_size(&field.element, version);
        match ranges.last_mut() {
            Some((range, same)) if *same == size => range.last = version,
            _ => ranges.push((Versions { first: version, last: version }, size)),
        }
    }
    match ranges.as_slice() {
        [] => "1".to_owned(),
        [(_, size)] => size.to_string(),
        [arms @ .., (_, last)] => {
            let arms: Vec<_> = arms
                .iter()
                .map(|(range, size)| format!("{}..={} => {size}", range.first, range.last))
                .collect();
            format!("match version {{ {}, _ => {last} }}", arms.join(", "))
        }
    }
}

/// The tagged section at the end of a structure.
fn tagged(body: &mut String, scope: &Scope<'_>) {
    let mut arms = String::new();
    for field in &scope.structure.fields {
        let Some(tag) = field.tag else { continue };
        let guard = match versions_here(scope, field).within(flexible_versions(scope)) {
            Condition::If(test) => format!(" if {test}"),
            _ => String::new(),
        };
        line(&mut arms, &format!("            {tag}{guard} => {} = {},", field.ident(), value(scope, field)));
    }
    let section = if arms.is_empty() {
        "        src.skip_tagged_fields()?;\n".to_owned()
    } else {
        format!(
            "        src.tagged_fields(|tag, src| {{\n            match tag {{\n{arms}            _ => return Ok(false),\n            }}\n            Ok(true)\n        }})?;\n"
        )
    };
    match scope.flexible {
        Condition::Always => body.push_str(&section),
        Condition::Never => {}
        Condition::If(_) => line(body, &format!("        if flexible {{\n{section}        }}")),
    }
}

/// The flexible versions of the structure.
pub(crate) fn flexible_versions(scope: &Scope<'_>) -> Versions {
    scope.api.flexible.unwrap_or(Versions::ALL).intersect(scope.versions)
}
