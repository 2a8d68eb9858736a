//! `karve why`: why a round ended as it did.

use crate::project::ProjectArgs;
use crate::ui;
use karve_core::why::RoundWhy;
use karve_os::error::{CommandError, Result};
use karve_os::text;

/// Characters of one line of a reason.
const LINE_CHARS: usize = 600;

/// Say why a round was kept, dropped or left undecided, and what would change that
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve why                the last round
  karve why 3
  karve why 3 --json | jq .would_change")]
pub struct WhyArgs {
    /// The round [default: the last one]
    round: Option<u32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl WhyArgs {
    /// Runs the command.
    pub fn run(&self, place: &ProjectArgs) -> Result<()> {
        let campaign = place.open()?.campaign;
        let last = campaign.rounds().last().map(|round| round.number);
        let Some(number) = self.round.or(last) else {
            return Err(CommandError::usage("no round is finished yet")
                .hint("\"karve status\" shows what is due"));
        };
        let why = campaign.why(number).ok_or_else(|| {
            CommandError::usage(format!("there is no finished round {number}"))
                .hint("\"karve log\" lists the rounds")
        })?;
        if self.json {
            ui::out_json(&why);
        } else {
            ui::out(&render(&why));
            ui::next_step(&format!(
                "\"karve show {number}\" and \"karve diff {number}\" show more"
            ));
        }
        Ok(())
    }
}

fn render(why: &RoundWhy) -> String {
    let mut lines = vec![
        format!("round {}  {}  {}", why.round, why.verdict, text::safe(&why.title, LINE_CHARS)),
        format!("because   {}", text::safe(&why.condition, LINE_CHARS)),
    ];
    let parts = [("numbers", &why.numbers), ("change", &why.would_change)];
    for (name, values) in parts {
        for (number, value) in values.iter().enumerate() {
            let label = if number == 0 { name } else { "" };
            lines.push(format!("{label:<9} {}", text::safe(value, LINE_CHARS)));
        }
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_the_numbers_and_what_would_change_it_are_one_line_each() {
        let why = RoundWhy {
            round: 2,
            title: "unroll".into(),
            verdict: "undecided",
            condition: "undecided after 400 blocks: a gain of more than 1.0% is not proven".into(),
            numbers: vec!["all cases: 1.012x [0.990, 1.030] at 95%".into(), "more".into()],
            would_change: vec!["a larger effect".into()],
        };
        let want = "round 2  undecided  unroll\n\
            because   undecided after 400 blocks: a gain of more than 1.0% is not proven\n\
            numbers   all cases: 1.012x [0.990, 1.030] at 95%\n          more\n\
            change    a larger effect\n";
        assert_eq!(render(&why), want);
    }
}
