//! Entries are found, judged and linted correctly.

use super::standing::narrowed;
use super::*;
use crate::profile::{CounterValues, Opportunity};

fn entry(id: &str) -> Entry {
    let section = |heading: &str| EntrySection {
        heading: heading.into(),
        text: format!("The {heading} of {id}."),
    };
    Entry {
        id: id.into(),
        title: format!("The title of {id}"),
        date: "2026-11".into(),
        scope: Scope { device: vec!["cpu".into()], ..Scope::default() },
        sections: ["When to apply", "Mechanism", "Recipe", "Pitfalls"].map(section).into(),
        ..Entry::default()
    }
}

fn evidence(run: &str, (low, ratio, high): (f64, f64, f64)) -> Evidence {
    Evidence {
        metric: "time_ms".into(),
        before: ratio,
        after: 1.0,
        ratio,
        low: Some(low),
        high: Some(high),
        // A run outside of campaigns has a host of its own.
        device: match run.contains('/') {
            true => "cpu".into(),
            false => format!("cpu {run}"),
        },
        workload: "gemm 512".into(),
        run: run.into(),
        date: "2026-11-15".into(),
        toolchain: "gcc 12".into(),
        n: 30,
        ..Evidence::default()
    }
}

fn values(list: &[(&str, f64)]) -> CounterValues {
    list.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect()
}

fn at(op: &str) -> Situation {
    Situation::new(op, &["c"], &["c"], &["cpu", "x86_64"])
}

#[test]
fn a_scope_knows_families_and_several_words_for_a_device() {
    let scope = |device: &[&str], op: &[&str]| Scope {
        device: device.iter().map(|w| (*w).to_owned()).collect(),
        op: op.iter().map(|w| (*w).to_owned()).collect(),
        ..Scope::default()
    };
    assert!(scope(&["cpu"], &["gemm"]).holds(&at("matmul")));
    assert!(scope(&["x86_64"], &["gemm"]).holds(&at("batched_matmul")));
    assert!(!scope(&["gpu"], &["gemm"]).holds(&at("matmul")));
    assert!(!scope(&["cpu"], &["attention"]).holds(&at("matmul")));
    assert!(scope(&["CPU"], &["reduction"]).holds(&at("row-softmax")));
    // What is unknown does not rule it out.
    assert!(scope(&["gpu"], &[]).holds(&Situation::default()));
    let near = scope(&["cpu"], &["gemm"]).named_by(&at("sgemm"));
    assert_eq!(near, ["device=cpu", "op=gemm"]);
    let named = Situation::default().with_op_in("sgemm_naive(const float *, int)");
    assert_eq!(named.op.iter().collect::<Vec<_>>(), ["gemm"]);
    assert!(Situation::default().with_op_in("walk(int)").op.is_empty());
    let c = Scope { language: vec!["c".into()], ..Scope::default() };
    assert!(c.holds(&Situation::new("x", &[], &["C", "c11"], &[])));
    assert!(!c.holds(&Situation::new("x", &[], &["c++"], &[])));
    let pow = Scope { source: vec!["pow".into(), "powf".into()], ..Scope::default() };
    assert!(pow.holds(&at("matmul")), "the source is not known");
    assert!(pow.holds(&at("matmul").with_source("y[i] = std::pow(x[i], 2);")));
    assert!(!pow.holds(&at("matmul").with_source("y[i] += power * x[i];")));
}

#[test]
fn a_trigger_fires_on_a_profile_and_says_why() {
    let mut misses = entry("block-for-cache");
    misses.triggers = vec!["l1_miss_pct > 5".into(), "llc_miss_pct > 30".into()];
    let mut other = entry("for-devices");
    other.scope.device = vec!["gpu".into()];
    other.triggers = vec!["l1_miss_pct > 5".into()];
    let library = Library::new(vec![entry("no-trigger"), other, misses]);
    let here = at("matmul");
    let read = values(&[("l1_miss_pct", 12.5)]);
    let query =
        LibraryQuery { situation: Some(&here), values: Some(&read), ..LibraryQuery::default() };
    let found = library.search(&query);
    assert_eq!(found.len(), 1);
    let why: Vec<String> = found[0].why.iter().map(MatchReason::describe).collect();
    assert_eq!(why, ["trigger l1_miss_pct > 5 (l1_miss_pct=12.5)", "scope device=cpu"]);
    // The counters that it uses were not read: it does not fire.
    let read = values(&[("ipc", 1.0)]);
    let query = LibraryQuery { values: Some(&read), ..query };
    assert!(library.search(&query).is_empty());
}

#[test]
fn something_to_try_is_told_by_the_entry_that_fires_on_the_same_counter() {
    let fires = |id: &str, trigger: &str| Entry { triggers: vec![trigger.into()], ..entry(id) };
    let library = Library::new(vec![
        fires("aligned-loads", "l1_miss_pct > 5"),
        fires("block-for-cache", "l1_miss_pct > 5"),
        fires("block-branches", "branch_miss_pct > 5"),
        entry("block-by-hand"),
    ]);
    let read = values(&[("l1_miss_pct", 12.5), ("branch_miss_pct", 9.0)]);
    let query = LibraryQuery { values: Some(&read), ..LibraryQuery::default() };
    let check = |name: &str, trigger: &str, want: Option<&str>| {
        let opportunity =
            Opportunity { name: name.into(), gain_pct: 10.0, trigger: trigger.into(), entry: None };
        let found = library.entry_for(&opportunity, &query);
        assert_eq!(found.map(|e| e.id.as_str()), want, "{name} {trigger}");
    };
    check("block loops", "l1_miss_pct=12.5", Some("block-for-cache"));
    check("quaternions", "l1_miss_pct=12.5", Some("aligned-loads"));
    check("block loops", "branch_miss_pct=9, ipc=1", Some("block-branches"));
    check("block loops", "ipc=1", None);
    check("block by hand", "told in words", None);
}

#[test]
fn words_find_entries_by_title_first_and_tell_which_words() {
    let mut unroll = entry("unroll");
    unroll.title = "Unroll the inner loop".into();
    let mut tiles = entry("tiles");
    tiles.sections[0].text = "After tiling, unrolling helps. ".repeat(3);
    let library = Library::new(vec![tiles, entry("other"), unroll]);
    let query = LibraryQuery { text: "unrolling loops", ..LibraryQuery::default() };
    let found = library.search(&query);
    let ids: Vec<&str> = found.iter().map(|m| m.entry.id.as_str()).collect();
    assert_eq!(ids, ["unroll", "tiles"]);
    assert!(found[0].why[0].describe().contains("unroll"));
    let nothing = LibraryQuery { text: "quaternion", ..LibraryQuery::default() };
    assert!(library.search(&nothing).is_empty());
}

#[test]
fn evidence_verifies_when_replicated_and_refutes_when_it_must() {
    let check = |list: &[(&str, (f64, f64, f64))], want: EntryStatus| {
        let mut of = entry("x");
        of.evidence = list.iter().map(|(run, e)| evidence(run, *e)).collect();
        let standing = assess(&of);
        assert_eq!(standing.status, want, "{list:?}: {}", standing.why);
    };
    let (gain, none, loss) = ((1.1, 1.2, 1.3), (0.98, 1.0, 1.005), (0.7, 0.8, 0.9));
    let open = (0.95, 1.02, 1.1);
    check(&[], EntryStatus::Candidate);
    check(&[("a", gain)], EntryStatus::Candidate);
    // The same run twice is not a replication.
    check(&[("a", gain), ("a", gain)], EntryStatus::Candidate);
    check(&[("a", gain), ("b", gain)], EntryStatus::Verified);
    check(&[("a", open), ("b", open)], EntryStatus::Candidate);
    check(&[("a", none)], EntryStatus::Refuted);
    check(&[("a", loss)], EntryStatus::Refuted);
    check(&[("a", gain), ("b", loss)], EntryStatus::Candidate);
    check(&[("a", gain), ("b", loss), ("c", none)], EntryStatus::Refuted);
    let mut wrong = entry("x");
    wrong.evidence = vec![Evidence { failed: true, ..evidence("a", gain) }];
    assert_eq!(assess(&wrong).status, EntryStatus::Refuted);
    // An anti-pattern is confirmed by slower results.
    let mut anti = entry("x");
    anti.kind = EntryKind::AntiPattern;
    anti.evidence = vec![evidence("a", loss), evidence("b", loss)];
    assert_eq!(assess(&anti).status, EntryStatus::Verified);
    anti.evidence = vec![evidence("a", gain)];
    assert_eq!(assess(&anti).status, EntryStatus::Refuted);
}

#[test]
fn a_verdict_counts_where_an_interval_does_not_tell() {
    let of = |interval, not_faster| effect_of(&Evidence { not_faster, ..evidence("a", interval) });
    let wide = (0.97, 1.0, 1.03);
    assert_eq!(of(wide, false), EvidenceEffect::Open);
    assert_eq!(of(wide, true), EvidenceEffect::Refutes);
    // It is faster, but by less than was asked for.
    assert_eq!(of((1.005, 1.012, 1.02), true), EvidenceEffect::Open);
    let disputed = Evidence { disputed: "b/round-2".into(), ..evidence("a", (1.2, 1.3, 1.4)) };
    assert_eq!(effect_of(&disputed), EvidenceEffect::Open);
}

#[test]
fn rounds_of_one_campaign_on_one_parent_do_not_replicate_each_other() {
    let gain = (1.1, 1.2, 1.3);
    let of = |runs: &[(&str, &str)]| {
        let mut of = entry("x");
        let with = |(run, parent): &(&str, &str)| Evidence {
            parent: (*parent).into(),
            ..evidence(run, gain)
        };
        of.evidence = runs.iter().map(with).collect();
        assess(&of).status
    };
    assert_eq!(of(&[("a/round-1", "p"), ("a/round-2", "p")]), EntryStatus::Candidate);
    assert_eq!(of(&[("a/round-1", "p"), ("a/round-2", "q")]), EntryStatus::Verified);
    assert_eq!(of(&[("a/round-1", "p"), ("b/round-1", "p")]), EntryStatus::Verified);
    assert_eq!(of(&[("a", ""), ("b", "")]), EntryStatus::Verified);
    // One program on one host under two compilers is one run.
    let mut twice = entry("x");
    twice.evidence = ["run.sh x", "run.sh --compiler clang x"]
        .map(|run| Evidence { device: "cpu".into(), ..evidence(run, gain) })
        .into();
    let standing = assess(&twice);
    assert_eq!(
        (standing.status, standing.why.as_str()),
        (EntryStatus::Candidate, "shown in one run")
    );
    // Without an interval nothing is proven, however large.
    let bare = |run: &str| Evidence { low: None, high: None, ..evidence(run, gain) };
    let mut reported_value = entry("x");
    reported_value.evidence = vec![bare("a"), bare("b")];
    let standing = assess(&reported_value);
    assert_eq!((standing.status, standing.n_for), (EntryStatus::Candidate, 2));
    // Reported evidence proves nothing, but still counts against an entry.
    let mut forged = entry("x");
    forged.status = EntryStatus::Verified;
    forged.evidence = vec![evidence("a", (9e5, 1e6, 2e6)), evidence("b", (9e5, 1e6, 2e6))];
    let reported = assess(&forged.clone().as_reported());
    assert_eq!((reported.status, reported.n_for), (EntryStatus::Candidate, 2));
    assert!(reported.why.contains("reported from elsewhere"), "{}", reported.why);
    assert_eq!(standing.why, "shown in 2 runs, too few with an interval");
}

#[test]
fn a_refutation_names_the_run_and_what_it_measured() {
    let mut of = entry("x");
    let against = |run: &str, metric: &str| Evidence {
        metric: metric.into(),
        workload: "gemm 512".into(),
        ..evidence(run, (0.7, 0.8, 0.9))
    };
    of.evidence = vec![against("old/round-1", "time_us"), against("new/round-2", "cycles")];
    let why = assess(&of).why;
    assert!(why.ends_with("the last against it is new/round-2, cycles on gemm 512"), "{why}");
}

#[test]
fn what_is_refuted_or_excepted_is_not_told_unless_asked_for() {
    let mut refuted = entry("refuted");
    refuted.evidence = vec![evidence("a", (0.7, 0.8, 0.9))];
    let mut excepted = entry("excepted");
    excepted.except = vec![Scope { op: vec!["gemm".into()], ..Scope::default() }];
    let mut retracted = entry("retracted");
    retracted.retracted =
        Some(Retraction { date: "2026-11".into(), why: "the reference was wrong".into() });
    let library = Library::new(vec![refuted, excepted, retracted, entry("fine")]);
    let ids = |query: &LibraryQuery<'_>| -> Vec<String> {
        let found = library.search(query);
        found.iter().map(|m| m.entry.id.clone()).collect()
    };
    let (gemm, softmax) = (at("matmul"), at("softmax"));
    let of = |situation| LibraryQuery { situation: Some(situation), ..LibraryQuery::default() };
    assert_eq!(ids(&of(&gemm)), ["fine"]);
    assert_eq!(ids(&of(&softmax)), ["excepted", "fine"]);
    let all = LibraryQuery { refuted: true, ..of(&gemm) };
    assert_eq!(ids(&all).len(), 4);
}

#[test]
fn retraction_reaches_everything_that_depends_on_it() {
    let mut a = entry("a");
    let (mut b, mut c) = (entry("b"), entry("c"));
    b.interactions.depends_on = vec!["a".into()];
    c.interactions.depends_on = vec!["b".into()];
    // A cycle ends.
    a.interactions.depends_on = vec!["c".into()];
    let all = [a, b, c, entry("d")];
    assert_eq!(dependants(&all, "a"), ["b", "c"]);
    assert!(dependants(&all, "d").is_empty());
    let mut all = all.to_vec();
    all[0].retracted = Some(Retraction::default());
    all[0].interactions = Interactions::default();
    let library = Library::new(all);
    let found = library.search(&LibraryQuery::default());
    let ids: Vec<&str> = found.iter().map(|m| m.entry.id.as_str()).collect();
    assert_eq!(ids, ["d"]);
    let standing = library.standing("c").unwrap();
    assert!(standing.describe().contains("depends on a, which is refuted"));
}

#[test]
fn an_entry_that_holds_elsewhere_is_narrowed_not_refuted() {
    let here = Scope { device: vec!["cpu".into()], op: vec!["softmax".into()], ..Scope::default() };
    let mut of = entry("x");
    assert_eq!(narrowed(&of, &here), None);
    of.evidence = vec![evidence("a", (1.1, 1.2, 1.3))];
    assert_eq!(narrowed(&of, &here), Some(here.clone()));
    let same = Scope { op: vec!["gemm".into()], ..here };
    assert_eq!(narrowed(&of, &same), None);
    // Where it also applies, nothing is excluded.
    of.evidence.push(Evidence { workload: "softmax n=8".into(), ..evidence("b", (1.1, 1.2, 1.3)) });
    let softmax = Scope { op: vec!["softmax".into()], ..same };
    assert_eq!(narrowed(&of, &softmax), None);
}

#[test]
fn evidence_is_near_if_it_is_of_the_same_family() {
    let linear = at("linear");
    assert!(linear.shares_op("gemv M=8") && linear.shares_op("sgemm 512"));
    assert!(!linear.shares_op("axpy of 4096 elements") && !linear.shares_op(""));
}

/// The date used for all lint checks.
const TODAY: &str = "2026-11-16";

fn complaints(of: &Entry) -> Vec<String> {
    lint(of, TODAY).into_iter().map(|c| c.what).collect()
}

#[test]
fn a_good_entry_passes_and_each_fault_is_named() {
    assert_eq!(complaints(&entry("good")), Vec::<String>::new());
    let check = |change: &dyn Fn(&mut Entry), want: &str| {
        let mut of = entry("x");
        change(&mut of);
        let found = complaints(&of);
        assert!(found.iter().any(|c| c.contains(want)), "{want}: {found:?}");
    };
    check(&|e| e.id = "Has Space".into(), "the id must be");
    check(&|e| e.title.clear(), "no title");
    check(&|e| e.date.clear(), "no date");
    check(&|e| e.date = "2026-13".into(), "is not a date");
    check(&|e| e.sections.truncate(3), "\"Pitfalls\" is missing");
    check(&|e| e.sections[1].text.clear(), "\"Mechanism\" is empty");
    check(&|e| e.sections[0].heading = "Tried".into(), "describes a moment in time");
    check(&|e| e.triggers = vec!["l1_miss_pct >".into()], "cannot be read");
    check(&|e| e.triggers = vec!["cash_miss > 1".into()], "not a counter");
    check(&|e| e.scope = Scope::default(), "neither a trigger nor a scope");
    check(&|e| e.status = EntryStatus::Superseded, "by which entry");
    check(&|e| e.risk = Risk::Lossy, "Accuracy");
    check(&|e| e.impact = Some(Impact { low: 2.0, high: 1.0 }), "impact");
    check(&|e| e.scope.device = vec!["x9000".into()], "device folklore");
    let bare = |e: &mut Entry| {
        e.evidence = vec![Evidence { ratio: 1.2, ..Evidence::default() }];
    };
    check(&bare, "lacks metric, device, workload, run, date, toolchain");
    check(&bare, "how many readings");
    let odd = |e: &mut Entry| e.evidence = vec![evidence("a", (1.3, 1.2, 1.4))];
    check(&odd, "outside its interval");
    let knob = Action::Knob { name: "UNROLL".into(), values: Vec::new() };
    check(&|e| e.apply = vec![knob.clone()], "not complete");
}

#[test]
fn ids_that_nobody_has_or_that_two_have_are_named() {
    let mut a = entry("a");
    a.interactions.composes_with = vec!["nobody".into()];
    a.interactions.depends_on = vec!["b".into()];
    let mut b = entry("b");
    b.retracted = Some(Retraction::default());
    let found = lint_all(&[a, b, entry("c"), entry("c")], TODAY);
    let what: Vec<String> = found.iter().map(|c| format!("{}: {}", c.id, c.what)).collect();
    assert_eq!(
        what,
        [
            "a: it names nobody, which does not exist",
            "c: the id is used 2 times",
            "a: it depends on an entry that is refuted or superseded",
        ]
    );
}

#[test]
fn what_is_expected_follows_what_was_shown() {
    let mut of = entry("x");
    assert!((of.expected_ratio() - 1.05).abs() < 1e-12);
    of.impact = Some(Impact { low: 1.0, high: 4.0 });
    assert!((of.expected_ratio() - 2.0).abs() < 1e-12);
    of.evidence = vec![evidence("a", (1.1, 1.21, 1.3)), evidence("b", (0.9, 1.0, 1.1))];
    assert!((of.expected_ratio() - 1.1).abs() < 1e-12);
}

#[test]
fn what_is_expected_here_is_bounded_and_says_what_it_rests_on() {
    let mut of = entry("x");
    of.impact = Some(Impact { low: 1.0, high: 4.0 });
    let here = at("gemm");
    let says = |of: &Entry, at: Option<&Situation>| expected(of, at).describe(of.kind, 1.0);
    let claimed = says(&of, Some(&here));
    assert_eq!(claimed.unwrap(), "1.21x expected, only claimed");
    of.evidence = vec![evidence("a", (90.0, 100.0, 110.0))];
    assert_eq!(
        says(&of, Some(&here)).unwrap(),
        "100.00x expected, measured on such operations (1 run)"
    );
    let far = "1.64x expected, measured on other operations only (100.00x in 1 run)";
    assert_eq!(says(&of, Some(&at("softmax"))).unwrap(), far);
    assert_eq!(says(&of, None).unwrap(), far);
    for kind in [EntryKind::AntiPattern, EntryKind::Technique] {
        of.kind = kind;
        assert_eq!(says(&of, Some(&here)), None);
    }
    assert_eq!(says(&entry("y"), None), None, "nothing is said about it");
}

#[test]
fn a_text_is_cut_at_a_sentence_and_never_inside_a_block() {
    let check = |text: &str, most: usize, want: &str| {
        assert_eq!(cut_at_sentence(text, most), want, "{text:?} to {most}");
    };
    check("One. Two.", 20, "One. Two.");
    check("One. Two and more.", 9, "One.");
    check("Version 1.2 is near", 12, "Version 1.2");
    check("Say:\n```c\na.b;\nc;\n```\nEnd.", 16, "Say:");
    check("\u{e4}\u{e4}\u{e4}", 2, "\u{e4}\u{e4}");
}

#[test]
fn middles_that_contradict_the_ratio_are_told() {
    let reported_value = |before: f64, interval| {
        let mut of = entry("x");
        of.evidence = vec![Evidence {
            before,
            after: if before == 0.0 { 0.0 } else { 1.0 },
            ..evidence("a/round-1", interval)
        }];
        let of = lint(&of, TODAY).into_iter().map(|c| (c.severity, c.what));
        of.collect::<Vec<_>>()
    };
    let interval = (4.2, 4.36, 4.5);
    let found = reported_value(5.0, interval);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].0, LintSeverity::Warning);
    assert!(found[0].1.contains("give 5.00x, but the ratio is 4.36x"));
    assert!(reported_value(4.8, interval).is_empty());
    assert!(reported_value(0.0, interval).is_empty(), "nothing was stored");
}

/// The complaints about a modified entry.
fn changed(change: &dyn Fn(&mut Entry)) -> Vec<String> {
    let mut of = entry("x");
    of.evidence = vec![evidence("a", (1.1, 1.2, 1.3))];
    assert_eq!(complaints(&of), Vec::<String>::new());
    change(&mut of);
    complaints(&of)
}

#[test]
fn figures_that_cannot_be_are_told() {
    let check = |change: &dyn Fn(&mut Entry), want: &str| {
        let found = changed(change);
        assert!(found.iter().any(|c| c.contains(want)), "{want}: {found:?}");
    };
    check(&|e| e.evidence[0].before = -1.2, "before -1.2 and after 1");
    check(&|e| e.evidence[0].after = 0.0, "cannot both be valid");
    check(&|e| e.evidence[0].after = f64::NAN, "cannot both be valid");
    check(&|e| e.evidence[0].ratio = -2.0, "has no ratio");
    check(&|e| e.evidence[0].ratio = 1e6, "above 1000x");
    check(&|e| e.evidence[0].high = Some(1e6), "above 1000x");
    check(&|e| e.evidence[0].low = Some(-1.0), "not positive ratios");
    check(&|e| e.evidence[0].low = Some(f64::NAN), "not positive ratios");
    check(&|e| e.evidence[0].low = Some(1.25), "outside its interval");
    let one_end = |e: &mut Entry| (e.evidence[0].low, e.evidence[0].high) = (None, Some(1.1));
    check(&one_end, "outside its interval");
    check(&|e| e.evidence[0].n = 0, "how many readings");
    check(&|e| e.evidence[0].date = "2026-11-17".into(), "in the future");
    check(&|e| e.evidence[0].date = "2027-01".into(), "in the future");
    check(&|e| e.date = "2031-01-01".into(), "its date 2031-01-01 is in");
    let much = Impact { low: 2.0, high: 5_000.0 };
    check(&|e| e.impact = Some(much), "the impact is above 1000x");
    // The current month is not in the future, and a failed change has no time after it.
    assert_eq!(changed(&|e| e.date = "2026-11".into()), Vec::<String>::new());
    let failed = |e: &mut Entry| {
        e.evidence[0] = Evidence {
            after: 0.0,
            ratio: 0.0,
            low: None,
            high: None,
            failed: true,
            ..e.evidence[0].clone()
        };
    };
    assert_eq!(changed(&failed), Vec::<String>::new());
}

#[test]
fn what_hides_or_changes_what_is_shown_is_told_by_its_number() {
    let check = |change: &dyn Fn(&mut Entry), want: &str| {
        let found = changed(change);
        assert!(found.iter().any(|c| c.contains(want)), "{want}: {found:?}");
        assert!(!found.concat().chars().any(char::is_control), "{found:?}");
    };
    check(&|e| e.title = "a\u{1b}[2Jb".into(), "the title contains the character U+001B");
    check(&|e| e.title = "two\nlines".into(), "U+000A");
    check(&|e| e.aliases = vec!["\u{202e}x".into()], "an alias contains the character U+202E");
    check(&|e| e.scope.op = vec!["a\u{7}".into()], "a scope contains");
    check(&|e| e.counter_signals = vec!["\u{200b}".into()], "U+200B");
    check(&|e| e.evidence[0].note = "fine\n\u{9b}31m".into(), "a note of evidence");
    check(&|e| e.evidence[0].run = "a\u{1b}b".into(), "evidence contains");
    check(&|e| e.sections[1].text.push('\u{8}'), "the section \"Mechanism\" contains");
    let knob = Action::Knob { name: "A\u{1b}".into(), values: vec!["1".into()] };
    check(&|e| e.apply = vec![knob.clone()], "\"apply\" contains");
    let plain = changed(&|e| e.sections[1].text = "One\n\ttwo\n".into());
    assert_eq!(plain, Vec::<String>::new());
}

#[test]
fn an_action_stays_inside_of_the_project() {
    let of = |glob: &str| {
        let files = vec![glob.to_owned()];
        let line = "#pragma once".to_owned();
        changed(&|e| {
            e.apply = vec![Action::Top { line: line.clone(), files: files.clone() }];
        })
    };
    for outside in ["/etc/*.c", "../x.c", "src/../../x.c", "~/x.c", " "] {
        assert!(of(outside).concat().contains("inside the project"), "{outside}");
    }
    for inside in ["*.c", "src/**/*.c", "a..b.c", "src/x.c"] {
        assert_eq!(of(inside), Vec::<String>::new(), "{inside}");
    }
}

#[test]
fn circles_and_contradictions_between_entries_are_told_once() {
    let with = |id: &str, change: &dyn Fn(&mut Interactions)| {
        let mut of = entry(id);
        change(&mut of.interactions);
        of
    };
    let reported_value = |entries: &[Entry]| -> Vec<String> {
        let found = lint_all(entries, TODAY).into_iter();
        found.map(|c| format!("{}: {}", c.id, c.what)).collect()
    };
    let needs = |id: &str, on: &str| with(id, &|i| i.depends_on = vec![on.into()]);
    let circle = [needs("a", "b"), needs("b", "c"), needs("c", "a"), needs("d", "a")];
    assert_eq!(reported_value(&circle), ["a: it depends on itself: a, b, c"]);
    let part = |id: &str, of: &str| with(id, &|i| i.contained_in = vec![of.into()]);
    assert_eq!(
        reported_value(&[part("a", "b"), part("b", "a")]),
        ["a: it is contained in itself: a, b"]
    );
    let mut old = entry("a");
    (old.status, old.superseded_by) = (EntryStatus::Superseded, Some("b".into()));
    let mut new = entry("b");
    (new.status, new.superseded_by) = (EntryStatus::Superseded, Some("a".into()));
    assert_eq!(reported_value(&[old, new]), ["a: it is superseded by itself: a, b"]);
    let torn = with("a", &|i| {
        i.depends_on = vec!["b".into()];
        i.incompatible_with = vec!["c".into()];
    });
    assert_eq!(
        reported_value(&[torn.clone(), needs("b", "c"), entry("c")]),
        ["a: it is incompatible with c, which it depends on or is part of"]
    );
    assert_eq!(reported_value(&[torn, entry("b"), entry("c")]), Vec::<String>::new());
}

#[test]
fn a_long_chain_of_dependence_is_followed_to_its_end() {
    let chain: Vec<Entry> = (0..5_000)
        .map(|n| {
            let mut of = entry(&format!("e{n}"));
            if n > 0 {
                of.interactions.depends_on = vec![format!("e{}", n - 1)];
            }
            of
        })
        .collect();
    assert_eq!(dependants(&chain, "e0").len(), 4_999);
    assert!(lint_all(&chain, TODAY).is_empty());
}
