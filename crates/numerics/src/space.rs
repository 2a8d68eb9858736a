//! Knobs: tunables declared next to the code or in `karve.toml`, read from and written to text.
//!
//! ```text
//! // karve: knob TILE in 8,16,32,64
//! #define TILE 8
//! ```
//!
//! The declaration is on the line before the definition. The definition is the knob's name, an
//! optional `=`, `:=`, `?=` or `:`, and the value; a type and `=` may come before the value.
//! Values may also be a range: `1..8` counts, `0..64+8` in steps, `1..64*2` doubles.
//! `karve: knob CFLAGS of -ffast,-fslow` makes a knob of each flag, which is in the list or not.
//! After the values, `when ORDER == 'tiled'` says where the knob matters; elsewhere it keeps its
//! value. `karve: restrict TILE % VEC == 0`, on a line of its own, forbids all other settings.

mod declaration;
mod json;
mod spot;

pub use declaration::{Delivery, KnobDeclaration};
pub use spot::{KnobLocation, TEMPLATE_END, is_value, render_template};

use std::collections::BTreeMap;

/// Maximum number of values of one knob.
const VALUES_MAX: usize = 256;
/// Maximum number of knobs of one kernel.
pub const KNOBS_MAX: usize = 64;

/// Knob values by name; all knobs of a kernel.
pub type KnobSetting = BTreeMap<String, String>;

/// A declared tunable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knob {
    /// Its name, as written in the file.
    pub name: String,
    /// The values it may take, in the order of the declaration.
    pub values: Vec<String>,
    /// The file.
    pub file: String,
    /// Where its value is in the file.
    pub spot: KnobLocation,
    /// The current value.
    pub current: String,
    /// Where it matters, if not everywhere: an expression over the other knobs.
    pub when: Option<String>,
}

impl Knob {
    /// Whether all values are numbers, so that they have an order.
    pub fn is_ordered(&self) -> bool {
        self.values.iter().all(|value| value.parse::<f64>().is_ok())
    }

    /// The rank of a value among the values: by size if ordered, else as declared.
    pub fn position(&self, value: &str) -> Option<usize> {
        if !self.is_ordered() {
            return self.values.iter().position(|v| v == value);
        }
        let number: f64 = value.parse().ok()?;
        let smaller = |v: &&String| v.parse::<f64>().is_ok_and(|v| v < number);
        self.values.iter().any(|v| v == value).then(|| self.values.iter().filter(smaller).count())
    }
}

/// A parsed declaration.
struct KnobComment {
    name: String,
    wants: AllowedValues,
    when: Option<String>,
}

/// Which values a declaration allows.
enum AllowedValues {
    OneOf(Vec<String>),
    AnyOf(Vec<String>),
}

/// Finds the knobs of a file: those declared in it and those declared for it.
pub fn parse_knobs(
    file: &str,
    text: &str,
    declared: &[KnobDeclaration],
) -> Result<Vec<Knob>, String> {
    let source = KnobFile { file, text };
    let lines: Vec<&str> = text.lines().collect();
    let mut knobs = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let Some(declaration) = line.split_once("karve: knob ").map(|(_, rest)| rest) else {
            continue;
        };
        let at = format!("{file}:{}", number + 1);
        let declaration = parse_declaration(declaration).ok_or_else(|| {
            format!("{at}: a knob is declared like `karve: knob TILE in 8,16,32,64`")
        })?;
        let next = number + 1;
        let line = lines.get(next).copied().unwrap_or_default();
        if !defines(line, &declaration) {
            let name = declaration.name;
            return Err(format!("{at}: the next line does not define {name}"));
        }
        knobs.extend(source.knobs_of(declaration, Some(next))?);
    }
    for one in declared.iter().filter(|one| one.file == file) {
        let declaration = declaration_of(one)?;
        let on_a_line =
            matches!(one.deliver, Delivery::Source | Delivery::Environment | Delivery::Argument);
        let line =
            on_a_line.then(|| lines.iter().position(|line| defines(line, &declaration))).flatten();
        if on_a_line && line.is_none() {
            return Err(format!("{file} does not define the knob {}", one.name));
        }
        let spot = match one.deliver {
            Delivery::Json => Some(KnobLocation::Json {
                path: one.key.clone().unwrap_or_else(|| one.name.clone()),
            }),
            Delivery::Placeholder => Some(KnobLocation::Placeholder),
            Delivery::Source | Delivery::Environment | Delivery::Argument => None,
        };
        match (spot, declaration.wants) {
            (Some(spot), AllowedValues::OneOf(values)) => {
                knobs.push(source.knob(&one.name, spot, values, declaration.when)?);
            }
            (_, wants) => {
                let again = KnobComment { wants, ..declaration };
                knobs.extend(source.knobs_of(again, line)?);
            }
        }
    }
    for (index, knob) in knobs.iter().enumerate() {
        if knobs[..index].iter().any(|earlier| earlier.name == knob.name) {
            return Err(format!("{file}: the knob {} is declared twice", knob.name));
        }
    }
    Ok(knobs)
}

fn declaration_of(one: &KnobDeclaration) -> Result<KnobComment, String> {
    let wants = match one.flags.is_empty() {
        true => AllowedValues::OneOf(
            expand_values(&one.values)
                .ok_or_else(|| format!("the knob {} has an invalid range", one.name))?,
        ),
        false => AllowedValues::AnyOf(one.flags.clone()),
    };
    Ok(KnobComment { name: one.name.clone(), wants, when: one.when.clone() })
}

fn defines(line: &str, declaration: &KnobComment) -> bool {
    match declaration.wants {
        AllowedValues::OneOf(_) => spot::find_value(line, &declaration.name).is_some(),
        AllowedValues::AnyOf(_) => spot::find_list(line, &declaration.name).is_some(),
    }
}

/// A file that has knobs.
struct KnobFile<'a> {
    file: &'a str,
    text: &'a str,
}

impl KnobFile<'_> {
    /// The knobs of a declaration whose definition is on a line: one, or one per flag.
    fn knobs_of(&self, declaration: KnobComment, line: Option<usize>) -> Result<Vec<Knob>, String> {
        let KnobComment { name, wants, when } = declaration;
        let line = line.unwrap_or_default();
        match wants {
            AllowedValues::OneOf(values) => {
                Ok(vec![self.knob(&name, KnobLocation::Value { line }, values, when)?])
            }
            AllowedValues::AnyOf(flags) => flags
                .into_iter()
                .map(|flag| {
                    let values = spot::FLAG.map(str::to_owned).to_vec();
                    let one = name_of_flag(&name, &flag);
                    let list = name.clone();
                    let spot = KnobLocation::Flag { line, list, flag };
                    self.knob(&one, spot, values, when.clone())
                })
                .collect(),
        }
    }

    fn knob(
        &self,
        name: &str,
        spot: KnobLocation,
        mut values: Vec<String>,
        when: Option<String>,
    ) -> Result<Knob, String> {
        let Self { file, text } = *self;
        if let Some(wrong) = values.iter().find(|value| !is_value(value)) {
            return Err(format!(
                "the knob {name} has the value {wrong:?}, which cannot be written"
            ));
        }
        let Some(current) = spot.read(text, name) else {
            return Err(match spot {
                KnobLocation::Json { path } => format!("{file} has no number or word at {path}"),
                KnobLocation::Placeholder => format!("{file} does not contain @{name}=VALUE@"),
                KnobLocation::Value { .. } | KnobLocation::Flag { .. } => {
                    format!("{file} does not define the knob {name}")
                }
            });
        };
        if !values.contains(&current) {
            values.insert(0, current.clone());
        }
        if values.len() < 2 || values.len() > VALUES_MAX {
            return Err(format!("the knob {name} needs 2 to {VALUES_MAX} values"));
        }
        Ok(Knob { name: name.into(), values, file: file.into(), spot, current, when })
    }
}

/// The knob of the flag `-funroll-loops` in CFLAGS is `CFLAGS_funroll_loops`.
fn name_of_flag(list: &str, flag: &str) -> String {
    let bare = flag.trim_start_matches('-');
    let name = bare.replace(|c: char| !c.is_alphanumeric(), "_");
    format!("{list}_{name}")
}

fn parse_declaration(text: &str) -> Option<KnobComment> {
    // A comment may end on the same line.
    let text = text.trim().trim_end_matches("*/").trim_end_matches("-->");
    let (text, when) = match text.split_once(" when ") {
        Some((text, when)) => (text, Some(when.trim().to_owned())),
        None => (text, None),
    };
    let (name, values, any) = match (text.split_once(" in "), text.split_once(" of ")) {
        (Some((name, values)), _) => (name, values, false),
        (None, Some((name, flags))) => (name, flags, true),
        (None, None) => return None,
    };
    let name = name.trim();
    let words: Vec<String> = values.split(',').map(|v| v.trim().to_owned()).collect();
    let words = if any { words } else { expand_values(&words)? };
    let usable = !name.is_empty()
        && words.iter().all(|value| is_value(value))
        && !(any && words.iter().any(|flag| !is_flag(flag)))
        && when.as_ref().is_none_or(|when| !when.is_empty());
    usable.then(|| KnobComment {
        name: name.to_owned(),
        wants: if any { AllowedValues::AnyOf(words) } else { AllowedValues::OneOf(words) },
        when,
    })
}

/// Whether a word is a flag of a command.
pub fn is_flag(word: &str) -> bool {
    word.len() > 1 && word.starts_with(['-', '+', '/']) && is_value(word)
}

/// The values with every range expanded.
pub fn expand_values(values: &[String]) -> Option<Vec<String>> {
    let mut all = Vec::new();
    for value in values {
        if value.contains("..") { all.extend(parse_range(value)?) } else { all.push(value.clone()) }
    }
    Some(all)
}

/// The numbers of `1..8`, `0..64+8` or `1..64*2`, including both ends.
fn parse_range(text: &str) -> Option<Vec<String>> {
    let (from, rest) = text.split_once("..")?;
    let at = rest.find(['+', '*']);
    let (to, step) = at.map_or((rest, "+1"), |at| rest.split_at(at));
    let (sign, step) = step.split_at(1);
    let (from, to, step): (i64, i64, i64) =
        (from.trim().parse().ok()?, to.trim().parse().ok()?, step.trim().parse().ok()?);
    let grows = match sign {
        "*" => step > 1 && from > 0,
        _ => step > 0,
    };
    let mut values = Vec::new();
    let mut value = from;
    while grows && value <= to && values.len() <= VALUES_MAX {
        values.push(value.to_string());
        value = match sign {
            "*" => value.checked_mul(step)?,
            _ => value.checked_add(step)?,
        };
    }
    (!values.is_empty()).then_some(values)
}

/// The restrictions that a file declares.
pub fn parse_restrictions(text: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| line.split_once("karve: restrict "));
    let text = |(_, rest): (&str, &str)| {
        let rest = rest.trim().trim_end_matches("*/").trim_end_matches("-->");
        rest.trim().to_owned()
    };
    lines.map(text).filter(|text| !text.is_empty()).collect()
}

/// The text with the knob set to a value.
pub fn set_knob(text: &str, knob: &Knob, value: &str) -> Option<String> {
    knob.spot.write(text, &knob.name, value)
}

#[cfg(test)]
mod tests;
