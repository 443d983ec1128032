//! Writes the function that makes a random structure, for tests.

use super::emit::{line, uses};
use super::emit_decode::{method, versions_here};
use super::model::{Condition, Element, Field, Scope};

/// Writes `random_fields`. Fields that the version lacks keep their defaults, so that what is written and
/// read back is equal.
pub(crate) fn emit(out: &mut String, scope: &Scope<'_>) {
    let mut body = String::new();
    for field in &scope.structure.fields {
        let (ident, value, default) = (field.ident(), value(scope, field), field.default_value());
        let text = match field.versions.within(scope.versions) {
            Condition::Always => value,
            Condition::Never => default,
            Condition::If(test) => format!("if {test} {{ {value} }} else {{ {default} }}"),
        };
        line(&mut body, &format!("            {ident}: {text},"));
    }
    let version = if uses(&body, "version") { "version" } else { "_version" };
    line(out, "    #[cfg(any(test, feature = \"testing\"))]");
    line(
        out,
        &format!(
            "    fn random_fields(rng: &mut Rng, {version}: i16) -> Self {{\n        Self {{\n{body}        }}\n    }}"
        ),
    );
}

fn value(scope: &Scope<'_>, field: &Field) -> String {
    let element = match &field.element {
        Element::Struct(name) => format!("{name}::random_fields(rng, version)"),
        element => format!("rng.{}()", method(element)),
    };
    let plain = if field.array { format!("rng.array(|rng| {element})") } else { element };
    let nullable = field.nullable.map(|nullable| nullable.within(versions_here(scope, field)));
    let value = match nullable {
        None => plain,
        Some(Condition::Never) => format!("Some({plain})"),
        Some(Condition::Always) => format!("if rng.bool() {{ None }} else {{ Some({plain}) }}"),
        Some(Condition::If(test)) => format!("if {test} && rng.bool() {{ None }} else {{ Some({plain}) }}"),
    };
    if field.tag.is_some() {
        format!("if rng.bool() {{ {value} }} else {{ {} }}", field.default_value())
    } else {
        value
    }
}
