//! Unused knobs: declared for a command or its environment, but not named anywhere.

use karve_core::charter::Commands;
use karve_numerics::space::{Delivery, KnobDeclaration};

/// Notes on unused knobs, a sentence each. Only the editable files are searched, not the
/// read-only ones.
pub fn unused_knobs(
    commands: &Commands,
    knobs: &[KnobDeclaration],
    editable: &[(String, Vec<u8>)],
) -> Vec<String> {
    let optional = [
        &commands.build,
        &commands.condition,
        &commands.quick_test,
        &commands.quick_bench,
        &commands.profile,
        &commands.peak,
    ];
    let mut lines: Vec<&str> = vec![&commands.test, &commands.bench];
    lines.extend(optional.into_iter().flatten().map(String::as_str));
    let names = |text: &str| lines.iter().any(|line| line.contains(text));
    let said = |knob: &KnobDeclaration| {
        let name = &knob.name;
        match knob.deliver {
            Delivery::Argument if !names(&format!("{{{name}}}")) => Some(format!(
                "no command uses {{{name}}}, so the knob {name} has no effect; add it to \
                 [commands] in karve.toml"
            )),
            Delivery::Environment if !names(name) && !is_used(knob, editable) => Some(format!(
                "no command and no editable file names {name}: check that something reads this \
                 environment variable, which [[knobs]] in karve.toml declares"
            )),
            // A missing template placeholder is an error, the others are declared where used.
            Delivery::Argument
            | Delivery::Environment
            | Delivery::Source
            | Delivery::Json
            | Delivery::Placeholder => None,
        }
    };
    knobs.iter().filter_map(said).collect()
}

/// Whether an editable file names a knob other than where its value is.
fn is_used(knob: &KnobDeclaration, editable: &[(String, Vec<u8>)]) -> bool {
    editable.iter().any(|(file, bytes)| {
        let text = String::from_utf8_lossy(bytes);
        let own = usize::from(*file == knob.file);
        text.matches(knob.name.as_str()).nth(own).is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(deliver: Delivery, (bench, kernel): (&str, &str), want: usize) {
        let commands = Commands { bench: bench.into(), ..Commands::default() };
        let knob = KnobDeclaration {
            name: "TILE".into(),
            values: vec!["1".into(), "2".into()],
            file: "knobs.env".into(),
            flags: Vec::new(),
            deliver,
            key: None,
            when: None,
        };
        let files = [("knobs.env", "TILE=1\n"), ("kernel.py", kernel)];
        let files = files.map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec()));
        let said = unused_knobs(&commands, &[knob], &files);
        assert_eq!(said.len(), want, "{deliver:?} {bench} {kernel} {said:?}");
    }

    #[test]
    fn a_knob_that_nothing_names_is_told() {
        check(Delivery::Argument, ("run {TILE}", ""), 0);
        check(Delivery::Argument, ("run TILE", "TILE"), 1);
        check(Delivery::Environment, ("run", ""), 1);
        check(Delivery::Environment, ("run $TILE", ""), 0);
        check(Delivery::Environment, ("run", "environ['TILE']"), 0);
        check(Delivery::Source, ("run", ""), 0);
        check(Delivery::Json, ("run", ""), 0);
        check(Delivery::Placeholder, ("run", ""), 0);
    }
}
