//! Golden files for the main tables, and what must hold for every file.

mod pages;
mod played;

use super::text::{bounded, code, escaped, fenced, gain, number, one_line, percent, wrapped, yaml};
use super::*;
use crate::web;
use karve_core::campaign::{Event, Record};
use karve_core::charter::{Better, Charter, ClockRule};
use karve_core::hypothesis::Direction;
use karve_core::policy::{FirstVerdict, Preset};
use played::{GUESSES, HIDDEN, Play, Player, Said, charter, hypothesis, script};
use std::path::PathBuf;

fn fold(records: &[Record]) -> Campaign {
    let mut campaign = Campaign::new();
    for record in records {
        campaign.record(record).unwrap();
    }
    campaign
}

fn played(charter: Charter, script: Vec<(Play, Said)>) -> Campaign {
    fold(&Player::new(charter, script).play())
}

fn finished() -> Campaign {
    played(charter(), script())
}

fn said() -> Said {
    Said { title: "Vectorize", mechanism: "lanes are idle", lesson: "", direction: Direction::Tile }
}

fn text_of(campaign: &Campaign, path: &str) -> String {
    let mut files = derived_files(campaign).into_iter();
    let found = files.find(|file| file.path == path);
    found.unwrap_or_else(|| panic!("no {path}")).text
}

/// Compares with `testdata/reports/<name>`; with KARVE_BLESS set, writes it instead.
fn check_golden(name: &str, text: &str) {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/reports");
    let path = root.join(name);
    if std::env::var_os("KARVE_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let want = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, want, "{name} differs; KARVE_BLESS=1 rewrites it");
}

#[test]
fn the_files_of_a_finished_campaign_are_as_they_were() {
    let campaign = finished();
    for (name, path) in [
        ("manifest.yaml", "manifest.yaml"),
        ("optimize.md", "logs/optimize.md"),
        ("performance_trend.md", "logs/performance_trend.md"),
        ("cost.md", "logs/cost.md"),
        ("verified_ineffective.jsonl", "verified_ineffective.jsonl"),
        ("perf_results.md", "sandbox/perf_results.md"),
        ("kernel_devlog.md", "docs/kernels/matmul.md"),
        ("optimizations.md", "results/optimizations.md"),
        ("optimization-1.md", "results/round-1.md"),
        ("summary-1.md", "rounds/round-1/summary.md"),
        ("summary-2.md", "rounds/round-2/summary.md"),
        ("summary-3.md", "rounds/round-3/summary.md"),
        ("summary-4.md", "rounds/round-4/summary.md"),
        ("REPORT.md", "REPORT.md"),
        ("roofline.svg", "roofline.svg"),
        ("trend.svg", "trend.svg"),
    ] {
        check_golden(name, &text_of(&campaign, path));
    }
}

#[test]
fn the_messages_of_a_finished_campaign_are_as_they_were() {
    let campaign = finished();
    check_golden("terminal.txt", &render_terminal_summary(&campaign));
    check_golden("pull_request.md", &render_pull_request(&campaign));
    let kept = &campaign.rounds()[0];
    check_golden("commit-1.txt", &render_commit_message(&campaign, kept).unwrap());
    let message = render_candidate_message(&charter(), 7, &hypothesis(&script()[1].1)).unwrap();
    check_golden("candidate-7.txt", &message);
}

#[test]
fn the_report_is_printed_as_it_is_stored() {
    let campaign = finished();
    assert_eq!(render_final_report(&campaign), text_of(&campaign, "REPORT.md"));
}

#[test]
fn files_of_the_same_events_are_the_same_bytes() {
    let records = Player::new(charter(), script()).play();
    assert_eq!(derived_files(&fold(&records)), derived_files(&fold(&records)));
}

#[test]
fn writing_round_by_round_gives_what_a_rebuild_gives() {
    let records = Player::new(charter(), script()).play();
    let mut disk = std::collections::BTreeMap::new();
    let mut campaign = Campaign::new();
    let mut settled = 0;
    for record in &records {
        campaign.record(record).unwrap();
        if campaign.rounds().len() > settled {
            settled = campaign.rounds().len();
            let all = derived_files(&campaign);
            let own = round_files(&campaign, settled as u32).into_iter();
            for file in own.chain(overview_files(&campaign)) {
                assert!(all.contains(&file), "{}", file.path);
                disk.insert(file.path, file.text);
            }
            let rebuilt = all.into_iter().filter(|file| file.path != "manifest.yaml");
            assert_eq!(disk, rebuilt.map(|f| (f.path, f.text)).collect());
        }
    }
    assert_eq!(settled, 4);
    assert!(campaign.is_finished());
}

#[test]
fn hidden_cases_are_told_by_nothing_that_an_agent_may_read() {
    let mut script = script();
    script[1].0 = Play::WrongOnHidden("expected 1 for M=700, got 2");
    let records = Player::new(charter(), script).play();
    let mut campaign = Campaign::new();
    for record in &records {
        campaign.record(record).unwrap();
        for (name, text) in all_texts(&campaign) {
            let text = text.replace(GUESSES, "");
            assert!(!text.to_lowercase().contains(HIDDEN), "{name}:\n{text}");
            assert!(!text.contains("M=700") && !text.contains("expected 1 for"), "{name}:\n{text}");
        }
    }
    assert!(text_of(&campaign, "REPORT.md").contains("| hidden case 1 | hidden |"));
}

#[test]
fn names_in_the_words_of_an_agent_are_shown_as_it_wrote_them() {
    // The one that was left out of a list would be the hidden case.
    let campaign = fold(&Player::new(charter(), script()).play());
    let texts = all_texts(&campaign);
    let has_all = |(_, text): &&(String, String)| text.contains(GUESSES);
    assert!(texts.iter().filter(has_all).count() >= 5);
    for (name, text) in &texts {
        let count = |guess| text.matches(guess).count();
        let all = GUESSES.split('/').map(count).collect::<Vec<_>>();
        assert!(all.windows(2).all(|two| two[0] == two[1]), "{name}: {all:?}\n{text}");
    }
}

/// Everything that is written about a campaign.
fn all_texts(campaign: &Campaign) -> Vec<(String, String)> {
    let mut texts = vec![
        ("terminal".to_owned(), render_terminal_summary(campaign)),
        ("pull request".to_owned(), render_pull_request(campaign)),
        ("report".to_owned(), render_final_report(campaign)),
        ("end".to_owned(), why_ended(campaign)),
        ("payload".to_owned(), web::cleaned(&Payload::of(campaign)).to_string()),
    ];
    let rounds = campaign.rounds().iter();
    texts.extend(rounds.map(|r| ("message".into(), render_commit_message(campaign, r).unwrap())));
    texts.extend(derived_files(campaign).into_iter().map(|file| (file.path, file.text)));
    texts
}

#[test]
fn every_row_of_every_table_has_the_columns_of_its_header() {
    for file in derived_files(&finished()) {
        let mut columns = None;
        let mut fence = None;
        for line in file.text.lines() {
            let ticks = line.len() - line.trim_start_matches('`').len();
            match fence {
                None if ticks >= 3 => fence = Some(ticks),
                Some(open) if ticks >= open => fence = None,
                _ => {}
            }
            if fence.is_some() || !line.starts_with("| ") {
                columns = None;
                continue;
            }
            let cells = line.replace("\\|", "").matches('|').count();
            assert_eq!(*columns.get_or_insert(cells), cells, "{}: {line}", file.path);
        }
        assert_eq!(fence, None, "{}", file.path);
    }
}

#[test]
fn perf_results_is_one_table_of_five_columns() {
    let text = text_of(&finished(), "sandbox/perf_results.md");
    let cells = |line: &str| -> Vec<String> {
        line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let lines: Vec<&str> = text.lines().collect();
    let head = ["iteration", "optimization", "latency_ms", "correctness", "status"];
    assert_eq!(cells(lines[0]), head);
    assert!(lines[1].starts_with("|----------:|:---") && lines[1].ends_with("-:|"), "{text}");
    assert!(lines.iter().all(|line| line.chars().count() == lines[0].chars().count()), "{text}");
    assert_eq!(cells(lines[2]), ["0", "baseline", "22.627417", "PASS", "keep"]);
    // A latency is what the candidate's own readings show, not a product of ratios.
    let campaign = finished();
    let shown = campaign.rounds()[0].shown().unwrap();
    let medians: Vec<f64> = shown.cases.iter().map(|case| case.candidate_median).collect();
    let mean = karve_numerics::stats::geometric_mean(&medians).unwrap();
    assert_eq!(cells(lines[3])[2], format!("{mean:.6}"));
}

#[test]
fn a_rate_becomes_a_latency_if_the_work_is_known() {
    let mut with_rate = charter();
    with_rate.metric.name = "gflops".into();
    with_rate.metric.unit = "GFLOPS".into();
    with_rate.metric.better = Better::Higher;
    let text = text_of(&played(with_rate.clone(), script()), "sandbox/perf_results.md");
    // Work 2^28 and 2^31 operations at 8 and 64 GFLOPS: 33.554432 ms both.
    assert!(text.lines().nth(2).unwrap().contains("|  33.554432 | PASS"), "{text}");
    with_rate.metric.work = None;
    let text = text_of(&played(with_rate, script()), "sandbox/perf_results.md");
    assert!(text.lines().nth(2).unwrap().contains("|          - | PASS"), "{text}");
}

/// The published example: 500 forward and 250 backward, then 520 and 258.
#[test]
fn the_trend_shows_combined_step_with_three_decimals() {
    let step = karve_core::score::combined_step;
    let ratio = step(520.0, 258.0) / step(500.0, 250.0);
    let mut charter = charter();
    charter.metric.name = "Combined Step TFLOPS".into();
    charter.metric.unit = "TFLOPS".into();
    charter.metric.better = Better::Higher;
    charter.limits.rounds = 1;
    charter.policy.baseline_number = Preset::Primus.policy().baseline_number;
    let mut player = Player::new(charter, vec![(Play::Measured(ratio), said())]);
    player.base = [300.0; 3];
    player.wiggle = 0.0;
    let text = text_of(&fold(&player.play()), "logs/performance_trend.md");
    assert!(
        text.contains("| 1 | BASELINE | the unchanged kernel | - | - | - | - | 300.000 | — |"),
        "{text}"
    );
    assert!(
        text.contains("| 2 | ACCEPTED | Vectorize | - | - | - | - | 310.077 | step +3.359% |"),
        "{text}"
    );
}

#[test]
fn forward_and_backward_are_kept_through_trend_and_tables() {
    use karve_core::charter::StepPasses;
    use karve_core::measurement::PassRates;
    let mut charter = charter();
    charter.metric.name = "Combined Step TFLOPS".into();
    charter.metric.unit = "TFLOPS".into();
    charter.metric.better = Better::Higher;
    charter.metric.passes = Some(StepPasses { forward: "f".into(), backward: "b".into() });
    charter.limits.rounds = 1;
    charter.policy.baseline_number = 1;
    charter.policy.first_round = 2;
    let step = karve_core::score::combined_step;
    let ratio = step(520.0, 258.0) / step(500.0, 250.0);
    let mut player = Player::new(charter, vec![(Play::Measured(ratio), said())]);
    player.base = [300.0; 3];
    player.wiggle = 0.0;
    player.passes = Some([
        PassRates { forward: 500.0, backward: 250.0 },
        PassRates { forward: 520.0, backward: 258.0 },
    ]);
    let records = player.play();
    let campaign = fold(&records);
    let text = text_of(&campaign, "logs/performance_trend.md");
    for row in [
        "| 1 | BASELINE | the unchanged kernel | 500.000 | 500.000 | 250.000 | 250.000 | 300.000 |",
        "| 2 | ACCEPTED | Vectorize | 520.000 | 520.000 | 258.000 | 258.000 | 310.077 | step \
         +3.359%, fwd +4.000%, bwd +3.200% |",
    ] {
        assert!(text.contains(row), "no {row} in {text}");
    }
    let baseline = text_of(&campaign, "rounds/round-1/summary.md");
    assert!(baseline.contains(" | PASS | 500.000 | 250.000 | — |"), "{baseline}");
    let table = super::baseline_csv(&campaign).unwrap();
    let mut lines = table.lines();
    assert_eq!(
        lines.next().unwrap(),
        "label,B,M,N,K,Check,Forward TFLOPS,Forward TFLOPS_stddev,Backward TFLOPS,\
         Backward TFLOPS_stddev,Forward Time (ms),Backward Time (ms),out_snr,da_snr,db_snr"
    );
    assert!(lines.next().unwrap().starts_with("small,1,"), "{table}");
    assert!(table.contains(",PASS,500,0,250,0,"), "{table}");
    let round = super::round_csv(&campaign, &campaign.rounds()[0], &records).unwrap();
    assert!(round.contains(",PASS,520,0,258,0,"), "{round}");
}

/// One gain of 25% in a campaign that tries layouts and times the whole command.
fn with_layouts() -> Player {
    let mut charter = charter();
    charter.metric.name = "wall_time".into();
    charter.metric.clocks = ClockRule::Metric;
    charter.commands.build = Some("make LAYOUT={layout}".into());
    charter.limits.rounds = 1;
    charter.policy.first_verdict = FirstVerdict::AfterChecks;
    Player::new(charter, vec![(Play::Measured(1.25), said())])
}

#[test]
fn layouts_and_the_positive_control_are_told_in_words() {
    let mut player = with_layouts();
    player.slower = 1.0 / 1.03;
    let campaign = fold(&player.play());
    let summary = text_of(&campaign, "rounds/round-1/summary.md");
    let shown = "The same code in 3 layouts: 1.250x, 1.250x, 1.250x by wall time;";
    assert!(summary.contains(shown), "{summary}");
    let report = render_final_report(&campaign);
    for part in [
        "other layouts of the same code: 1, kept after that: 1.",
        "3% more work measured as 0.971x",
        "and was detected.",
        "or more, by wall time.",
    ] {
        assert!(report.contains(part), "no {part:?} in {report}");
    }
    let mut player = with_layouts();
    player.last_layout = 0.7;
    let campaign = fold(&player.play());
    let summary = text_of(&campaign, "rounds/round-1/summary.md");
    let shown = "1.250x, 1.250x, 0.875x by wall time";
    assert!(summary.contains(shown), "{summary}");
    let report = render_final_report(&campaign);
    for part in ["1, kept after that: 0.", "and was not detected: a change"] {
        assert!(report.contains(part), "no {part:?} in {report}");
    }
}

#[test]
fn the_trend_puts_a_backward_metric_into_its_columns() {
    let mut charter = charter();
    charter.metric.name = "Backward Time (ms)".into();
    charter.limits.rounds = 1;
    let text = text_of(
        &played(charter, vec![(Play::Measured(1.25), said())]),
        "logs/performance_trend.md",
    );
    assert!(text.contains("| - | - | 0.042 | 0.042 | - | step -, fwd —, bwd +25.000% |"), "{text}");
}

#[test]
fn hostile_text_stays_inside_its_cell() {
    assert_eq!(one_line(" a\r\n\tb \u{1b}[31mc\u{1b}[0m\u{202e}d "), "a b cd");
    assert_eq!(escaped("a|b `c` <d> [e](f)"), "a\\|b \\`c\\` \\<d\\> \\[e\\](f)");
    assert_eq!(escaped("# x"), "\\# x");
    assert_eq!(escaped("12. x"), "12\\. x");
    assert_eq!(escaped("12.5 x"), "12.5 x");
    assert_eq!(code("a | b"), "`a \\| b`");
    assert_eq!(code("a `` b"), "``` a `` b ```");
    assert_eq!(fenced("x\n`````\ny"), "``````text\nx\n`````\ny\n``````");
    assert_eq!(bounded("abcdef", 4), "abc…");
    assert_eq!(yaml("a\"b\\\n\u{7f}"), "\"a\\\"b\\\\\\n\\u007f\"");
    assert_eq!(serde_json::from_str::<String>(&yaml("\u{e0041}é\0")).unwrap(), "\u{e0041}é\0");
}

#[test]
fn figures_have_one_format() {
    assert_eq!(percent(Some(1.1)), "+10.000%");
    assert_eq!(percent(Some(0.999_999_99)), "+0.000%");
    assert_eq!(percent(Some(f64::NAN)), "-");
    assert_eq!((gain(Some(1.9)), gain(Some(62.61))), ("+90.000%".into(), "62.610x".into()));
    assert_eq!(number(Some(8.0)), "8.0000");
    assert_eq!(number(Some(123_456.7)), "123457");
    assert_eq!(number(Some(0.001_234_56)), "0.0012346");
    assert_eq!(number(Some(1e12)), "1.0000e12");
    assert_eq!(number(None), "-");
    assert_eq!(text::duration(1_500), "1.5 s");
    assert_eq!(text::duration(61_000), "1 min 01 s");
    assert_eq!(text::duration(3_720_000), "1 h 02 min");
    assert_eq!(text::stamp(1_767_225_600_000), "2026-01-01 00:00");
    assert_eq!(text::file_name("../a b"), "_a_b");
}

#[test]
fn the_terminal_summary_is_narrow() {
    let mut script = script();
    script[2].0 = Play::BuildFailed(
        "a_very_long_word_without_any_blank_that_a_compiler_might_print_for_a_template_instance_of_\
         another_template error: expected something else here and there",
    );
    let text = render_terminal_summary(&played(charter(), script));
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    assert_eq!(wrapped("aaa bb cccccc", 5, " "), " aaa\n bb\n cccc\n cc");
}

#[test]
fn the_terminal_summary_warns_of_a_case_that_became_slower() {
    let mut player = Player::new(charter(), script());
    assert!(!render_terminal_summary(&fold(&player.play())).contains("slower than the original"));
    player = Player::new(charter(), script());
    player.on_hidden = 0.1;
    let text = render_terminal_summary(&fold(&player.play()));
    assert!(text.contains("on the hidden case hidden"), "{text}");
    assert!(text.contains("slower than the original"), "{text}");
    assert!(!text.replace(GUESSES, "").contains(HIDDEN), "{text}");
}

#[test]
fn a_campaign_that_was_extended_has_an_estimate_again() {
    let mut records = Player::new(charter(), script()).play();
    assert!(render_terminal_summary(&fold(&records)).contains("95% interval"));
    let mut limits = charter().limits;
    limits.rounds = 5;
    let last = records.last().unwrap().clone();
    records.push(Record { seq: last.seq + 1, event: Event::Extended { limits }, ..last });
    let campaign = fold(&records);
    assert!(render_terminal_summary(&campaign).contains("about 1.250x (estimate from 1 kept"));
    assert!(!render_final_report(&campaign).replace(GUESSES, "").contains(HIDDEN));
    assert!(derived_files(&campaign).iter().all(|file| file.path != "REPORT.md"));
}

#[test]
fn a_campaign_at_any_point_can_be_reported() {
    let mut campaign = Campaign::new();
    assert!(derived_files(&campaign).is_empty());
    assert!(round_files(&campaign, 1).is_empty());
    for record in Player::new(charter(), script()).play() {
        campaign.record(&record).unwrap();
        assert!(derived_files(&campaign).len() >= 8);
        assert!(!render_final_report(&campaign).is_empty());
        assert!(!render_terminal_summary(&campaign).is_empty());
        assert!(!render_pull_request(&campaign).is_empty());
    }
}
