//! Writes the function that writes a structure.

use super::emit::{line, uses};
use super::emit_decode::{flexible, flexible_line, flexible_versions, method, versions_here};
use super::model::{Condition, Element, Field, Scope, negated};

/// Writes `encode_fields`.
pub(crate) fn emit(out: &mut String, scope: &Scope<'_>) {
    let mut body = String::new();
    for field in &scope.structure.fields {
        if field.tag.is_some() {
            refuse_where_absent(&mut body, scope, field);
        } else {
            statement(&mut body, scope, field);
        }
    }
    match scope.flexible {
        Condition::Always => body.push_str(&tagged(scope)),
        Condition::Never => {}
        Condition::If(_) => line(&mut body, &format!("        if flexible {{\n{}        }}", tagged(scope))),
    }
    line(&mut body, "        Ok(())");

    let flexible = flexible_line(scope, &body);
    let version = if uses(&body, "version") || !flexible.is_empty() { "version" } else { "_version" };
    let dst = if uses(&body, "dst") { "dst" } else { "_dst" };
    line(
        out,
        &format!(
            "    fn encode_fields(&self, {dst}: &mut Encoder, {version}: i16) -> Result<(), EncodeError> {{"
        ),
    );
    out.push_str(&flexible);
    out.push_str(&body);
    line(out, "    }\n");
}

fn statement(body: &mut String, scope: &Scope<'_>, field: &Field) {
    let put = put(scope, field);
    match field.versions.within(scope.versions) {
        Condition::Always => line(body, &format!("        {put}")),
        Condition::Never => line(body, &refusal(scope, field)),
        Condition::If(test) if field.ignorable => line(body, &format!("        if {test} {{ {put} }}")),
        Condition::If(test) => {
            let refusal = refusal(scope, field);
            line(body, &format!("        if {test} {{ {put} }} else {refusal}"));
        }
    }
}

/// For a tagged field: an error in versions that lack it, unless it may be dropped.
fn refuse_where_absent(body: &mut String, scope: &Scope<'_>, field: &Field) {
    if let Condition::If(test) = field.versions.within(scope.versions)
        && !field.ignorable
    {
        line(body, &refusal_if(&format!("{} && ", negated(&test)), scope, field));
    }
}

/// A statement that fails if the field is not at its default.
fn refusal(scope: &Scope<'_>, field: &Field) -> String {
    refusal_if("", scope, field)
}

/// The same under a further condition, which ends in `&&`.
fn refusal_if(condition: &str, scope: &Scope<'_>, field: &Field) -> String {
    let (structure, name) = (&scope.structure.name, &field.name);
    let test = field.differs_from_default();
    format!(
        "if {condition}{test} {{ return Err(EncodeError::UnsupportedField {{ structure: \"{structure}\", field: \"{name}\", version }}); }}"
    )
}

/// The statements that write a field which the version has.
fn put(scope: &Scope<'_>, field: &Field) -> String {
    let mut text = String::new();
    let place = format!("self.{}", field.ident());
    let nullable = field.nullable.map(|nullable| nullable.within(versions_here(scope, field)));
    let test = match &nullable {
        None | Some(Condition::Always) => None,
        Some(Condition::Never) => Some(format!("{place}.is_none()")),
        Some(Condition::If(test)) => Some(format!("{place}.is_none() && {}", negated(test))),
    };
    if let Some(test) = test {
        let (structure, name) = (&scope.structure.name, &field.name);
        text = format!(
            "if {test} {{ return Err(EncodeError::UnexpectedNull {{ structure: \"{structure}\", field: \"{name}\", version }}); }} "
        );
    }
    text + &put_value(scope, field, &place)
}

fn put_value(scope: &Scope<'_>, field: &Field, place: &str) -> String {
    let flexible = flexible(scope);
    let nullable = field.nullable.is_some();
    if field.array {
        let element = put_element(&field.element, flexible);
        let items = |place: &str| {
            format!("dst.put_count({place}.len(), {flexible})?; for item in {place} {{ {element} }}")
        };
        return if nullable {
            format!(
                "match &{place} {{ None => dst.put_null({flexible}), Some(items) => {{ {} }} }}",
                items("items")
            )
        } else {
            format!("{{ let items = &{place}; {} }}", items("items"))
        };
    }
    let (null, value) =
        if nullable { ("nullable_", format!("{place}.as_ref()")) } else { ("", format!("&{place}")) };
    match &field.element {
        Element::Struct(_) if nullable => {
            format!(
                "match &{place} {{ None => dst.put_i8(-1), Some(value) => {{ dst.put_i8(1); value.encode_fields(dst, version)?; }} }}"
            )
        }
        Element::Struct(_) => format!("{place}.encode_fields(dst, version)?;"),
        Element::String => format!("dst.put_{null}string({value}, {flexible})?;"),
        Element::Bytes => format!("dst.put_{null}bytes({value}, {flexible})?;"),
        Element::Records if nullable => format!("dst.put_records({value}, {flexible})?;"),
        Element::Records => format!("dst.put_records(Some({value}), {flexible})?;"),
        element => format!("dst.put_{}({place});", method(element)),
    }
}

fn put_element(element: &Element, flexible: &str) -> String {
    match element {
        Element::Struct(_) => "item.encode_fields(dst, version)?;".to_owned(),
        Element::String => format!("dst.put_string(item, {flexible})?;"),
        Element::Bytes | Element::Records => format!("dst.put_bytes(item, {flexible})?;"),
        element => format!("dst.put_{}(*item);", method(element)),
    }
}

/// The tagged section: how many fields differ from their defaults, then these by ascending tag.
fn tagged(scope: &Scope<'_>) -> String {
    let mut fields: Vec<_> = scope.structure.fields.iter().filter(|field| field.tag.is_some()).collect();
    fields.sort_by_key(|field| field.tag);
    if fields.is_empty() {
        return "        dst.put_uvarint(0);\n".to_owned();
    }
    let (mut tests, mut count, mut puts) = (String::new(), Vec::new(), String::new());
    for field in fields {
        let tag = field.tag.unwrap_or_default();
        let differs = field.differs_from_default();
        let test = match versions_here(scope, field).within(flexible_versions(scope)) {
            Condition::If(test) => format!("{test} && ({differs})"),
            _ => differs,
        };
        let present = format!("has_{tag}");
        line(&mut tests, &format!("        let {present} = {test};"));
        count.push(format!("u32::from({present})"));
        let put = put(scope, field);
        line(
            &mut puts,
            &format!("        if {present} {{ dst.put_tagged({tag}, |dst| {{ {put} Ok(()) }})?; }}"),
        );
    }
    format!("{tests}        dst.put_uvarint({});\n{puts}", count.join(" + "))
}
