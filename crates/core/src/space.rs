//! Knobs: tunables declared next to the code or in `karve.toml`, read from and written to text.
//!
//! ```text
//! // karve: knob TILE in 8,16,32,64
//! #define TILE 8
//! ```
//!
//! The declaration stands on the line before the definition. The definition is the knob's name,
//! an optional `=`, `:=`, `?=` or `:`, and the value; a type and `=` may stand before the value.
//! Values may also be a range: `1..8` counts, `0..64+8` in steps, `1..64*2` doubles.
//! `karve: restrict TILE % VEC == 0`, on a line of its own, forbids all other settings.

use crate::charter::KnobDeclaration;
use std::collections::BTreeMap;

/// Values of one knob at most.
const VALUES_MAX: usize = 256;
/// Knobs of one kernel at most.
pub const KNOBS_MAX: usize = 64;

/// Knob values by name; all knobs of a kernel.
pub type Config = BTreeMap<String, String>;

/// A declared tunable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knob {
    /// Its name as it stands in the file.
    pub name: String,
    /// The values it may take, in the order of the declaration.
    pub values: Vec<String>,
    /// The file.
    pub file: String,
    /// The line of the definition, from 0.
    pub line: usize,
    /// The value that stands there.
    pub current: String,
}

impl Knob {
    /// Whether all values are numbers, so that they have an order.
    pub fn is_ordered(&self) -> bool {
        self.values.iter().all(|value| value.parse::<f64>().is_ok())
    }

    /// Where a value stands among the values: by size if ordered, else as declared.
    pub fn position(&self, value: &str) -> Option<usize> {
        if !self.is_ordered() {
            return self.values.iter().position(|v| v == value);
        }
        let number: f64 = value.parse().ok()?;
        let smaller = |v: &&String| v.parse::<f64>().is_ok_and(|v| v < number);
        self.values
            .iter()
            .any(|v| v == value)
            .then(|| self.values.iter().filter(smaller).count())
    }
}

/// Finds the knobs of a file: those declared in it and those declared for it.
pub fn parse_knobs(
    file: &str,
    text: &str,
    declared: &[KnobDeclaration],
) -> Result<Vec<Knob>, String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut knobs = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let Some(declaration) = line.split_once("karve: knob ").map(|(_, rest)| rest) else {
            continue;
        };
        let at = format!("{file}:{}", number + 1);
        let (name, values) = parse_declaration(declaration).ok_or_else(|| {
            format!("{at}: a knob is declared like `karve: knob TILE in 8,16,32,64`")
        })?;
        let next = number + 1;
        let current = lines.get(next).and_then(|line| find_value(line, &name));
        let Some((start, end)) = current else {
            return Err(format!("{at}: the next line does not define {name}"));
        };
        knobs.push(knob(file, &name, values, (next, &lines[next][start..end]))?);
    }
    for declaration in declared
        .iter()
        .filter(|declaration| declaration.file == file)
    {
        let name = &declaration.name;
        let found = lines.iter().enumerate().find_map(|(number, line)| {
            let (start, end) = find_value(line, name)?;
            Some((number, &line[start..end]))
        });
        let place = found.ok_or_else(|| format!("{file} does not define the knob {name}"))?;
        knobs.push(knob(file, name, declaration.values.clone(), place)?);
    }
    for (index, knob) in knobs.iter().enumerate() {
        if knobs[..index]
            .iter()
            .any(|earlier| earlier.name == knob.name)
        {
            return Err(format!("{file}: the knob {} is declared twice", knob.name));
        }
    }
    Ok(knobs)
}

fn parse_declaration(text: &str) -> Option<(String, Vec<String>)> {
    let (name, values) = text.split_once(" in ")?;
    let name = name.trim();
    // A comment may end on the same line.
    let values = values.trim().trim_end_matches("*/").trim_end_matches("-->");
    let mut all = Vec::new();
    for value in values.split(',').map(str::trim) {
        match value.contains("..") {
            true => all.extend(parse_range(value)?),
            false => all.push(value.to_owned()),
        }
    }
    let values = all;
    let usable = !name.is_empty() && values.iter().all(|value| is_value(value));
    usable.then(|| (name.to_owned(), values))
}

/// The numbers of `1..8`, `0..64+8` or `1..64*2`, both ends among them.
fn parse_range(text: &str) -> Option<Vec<String>> {
    let (from, rest) = text.split_once("..")?;
    let at = rest.find(['+', '*']);
    let (to, step) = at.map_or((rest, "+1"), |at| rest.split_at(at));
    let (sign, step) = step.split_at(1);
    let (from, to, step): (i64, i64, i64) = (
        from.trim().parse().ok()?,
        to.trim().parse().ok()?,
        step.trim().parse().ok()?,
    );
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
    let lines = text
        .lines()
        .filter_map(|line| line.split_once("karve: restrict "));
    let text = |(_, rest): (&str, &str)| {
        let rest = rest.trim().trim_end_matches("*/").trim_end_matches("-->");
        rest.trim().to_owned()
    };
    lines.map(text).filter(|text| !text.is_empty()).collect()
}

fn is_value(value: &str) -> bool {
    !value.is_empty() && !value.contains(|c: char| c.is_whitespace() || ENDS.contains(&c))
}

/// Characters that end a value.
const ENDS: [char; 4] = [';', ',', ')', '"'];

fn knob(
    file: &str,
    name: &str,
    mut values: Vec<String>,
    (line, current): (usize, &str),
) -> Result<Knob, String> {
    if let Some(wrong) = values.iter().find(|value| !is_value(value)) {
        return Err(format!(
            "the knob {name} has the value {wrong:?}, which cannot be written"
        ));
    }
    if !values.iter().any(|value| value == current) {
        values.insert(0, current.to_owned());
    }
    if values.len() < 2 || values.len() > VALUES_MAX {
        return Err(format!("the knob {name} needs 2 to {VALUES_MAX} values"));
    }
    Ok(Knob {
        name: name.into(),
        values,
        file: file.into(),
        line,
        current: current.into(),
    })
}

/// Where the value of `name` stands in a line, if the line defines it.
fn find_value(line: &str, name: &str) -> Option<(usize, usize)> {
    if name.is_empty() {
        return None;
    }
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let mut from = 0;
    while let Some(offset) = line.get(from..)?.find(name) {
        let start = from + offset;
        let end = start + name.len();
        from = end;
        let clear_before = !line[..start].ends_with(word);
        let clear_after = !line[end..].starts_with(word);
        if !(clear_before && clear_after) || line[..start].contains("karve: knob") {
            continue;
        }
        let rest = line[end..].trim_start();
        let rest = ["?=", ":=", "=", ":"]
            .iter()
            .find_map(|sign| rest.strip_prefix(sign))
            .unwrap_or(rest)
            .trim_start();
        let rest = behind_type(rest).unwrap_or(rest).trim_start_matches('"');
        let length = rest
            .find(|c: char| c.is_whitespace() || ENDS.contains(&c))
            .unwrap_or(rest.len());
        if length > 0 {
            let at = line.len() - rest.len();
            return Some((at, at + length));
        }
    }
    None
}

/// What follows `usize = ` and the like, if that stands here: a definition may name a type.
fn behind_type(rest: &str) -> Option<&str> {
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    let value = rest[end..].trim_start().strip_prefix('=')?;
    let typed = end > 0 && !value.starts_with('=');
    typed.then(|| value.trim_start())
}

/// The text with the knob set to a value.
pub fn set_knob(text: &str, knob: &Knob, value: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len() + value.len());
    let mut done = false;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        if number == knob.line {
            let (start, end) = find_value(line, &knob.name)?;
            out.push_str(&line[..start]);
            out.push_str(value);
            out.push_str(&line[end..]);
            done = true;
        } else {
            out.push_str(line);
        }
    }
    done.then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, name: &str, value: &str, want: &str) {
        let knobs = parse_knobs("k.c", text, &[]).unwrap();
        let knob = knobs.iter().find(|knob| knob.name == name).unwrap();
        assert_eq!(set_knob(text, knob, value).as_deref(), Some(want));
    }

    #[test]
    fn a_knob_is_set_where_it_is_defined() {
        check(
            "// karve: knob TILE in 8,16\n#define TILE 8 // width\nint TILE_K = TILE;\n",
            "TILE",
            "16",
            "// karve: knob TILE in 8,16\n#define TILE 16 // width\nint TILE_K = TILE;\n",
        );
        check(
            "# karve: knob OPT in -O1,-O3\nOPT = -O1",
            "OPT",
            "-O3",
            "# karve: knob OPT in -O1,-O3\nOPT = -O3",
        );
        check(
            "/* karve: knob N in 1,2 */\nconstexpr int N = 1;\n",
            "N",
            "2",
            "/* karve: knob N in 1,2 */\nconstexpr int N = 2;\n",
        );
        check(
            "# karve: knob MODE in fast,slow\nMODE = \"slow\"\n",
            "MODE",
            "fast",
            "# karve: knob MODE in fast,slow\nMODE = \"fast\"\n",
        );
    }

    #[test]
    fn a_definition_may_name_a_type() {
        for (line, want) in [
            ("const TILE: usize = 8;", "const TILE: usize = 16;"),
            ("TILE: int = 8  # width", "TILE: int = 16  # width"),
            ("TILE: 8", "TILE: 16"),
            ("TILE = 8 == WIDTH", "TILE = 16 == WIDTH"),
        ] {
            let text = |line: &str| format!("# karve: knob TILE in 8,16\n{line}\n");
            check(&text(line), "TILE", "16", &text(want));
        }
    }

    #[test]
    fn a_declaration_outside_the_source_finds_its_definition() {
        let declared = KnobDeclaration {
            name: "WARPS".into(),
            values: vec!["4".into(), "8".into()],
            file: "k.py".into(),
        };
        let knobs = parse_knobs("k.py", "x = 1\nWARPS = 2\n", &[declared]).unwrap();
        assert_eq!(knobs[0].current, "2");
        assert_eq!(knobs[0].values, ["2", "4", "8"]);
        assert_eq!(knobs[0].position("8"), Some(2));
    }

    #[test]
    fn values_may_be_a_range() {
        for (values, want) in [
            ("1..4", "1 2 3 4"),
            ("0..20+8", "0 8 16"),
            ("1..20*2", "1 2 4 8 16"),
            ("-1, 4..8+4", "-1 4 8"),
        ] {
            let text = format!("// karve: knob X in {values}\n#define X 4\n");
            let knobs = parse_knobs("k.c", &text, &[]).unwrap();
            assert!(
                knobs[0].values.join(" ").ends_with(want),
                "{:?}",
                knobs[0].values
            );
        }
        for wrong in ["4..1", "1..9*1", "0..9*2", "1..9+0", "a..b", "1..99999"] {
            let text = format!("// karve: knob X in {wrong}\n#define X 4\n");
            assert!(parse_knobs("k.c", &text, &[]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn restrictions_stand_in_comments() {
        let text = "# karve: restrict A % B == 0\n/* karve: restrict A < 4 */\nA = 1\n";
        assert_eq!(parse_restrictions(text), ["A % B == 0", "A < 4"]);
    }

    #[test]
    fn mistakes_name_file_and_line() {
        for (text, part) in [
            ("// karve: knob X of 1,2\n#define X 1", "k.c:1"),
            ("// karve: knob X in 1,2\n#define Y 1", "does not define X"),
            ("// karve: knob X in 1,,2\n#define X 1", "k.c:1"),
            ("// karve: knob X in 1\n#define X 1", "needs 2"),
        ] {
            let error = parse_knobs("k.c", text, &[]).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }

    proptest! {
        #![proptest_config(crate::testing::fixed(256))]

        #[test]
        fn any_text_is_read_or_refused(text in "(.{0,40}\n){0,6}") {
            let _ = parse_knobs("k.c", &text, &[]);
        }

        #[test]
        fn what_is_set_is_read_again(value in "[a-z0-9_.+-]{1,8}") {
            let text = "// karve: knob X in a,b\n#define X a\n";
            let knob = &parse_knobs("k.c", text, &[]).unwrap()[0];
            let changed = set_knob(text, knob, &value).unwrap();
            prop_assert_eq!(&parse_knobs("k.c", &changed, &[]).unwrap()[0].current, &value);
        }
    }

    #[test]
    fn a_knob_without_a_name_is_nowhere() {
        assert_eq!(find_value("TILE 8", ""), None);
    }
}
