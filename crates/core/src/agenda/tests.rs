//! Which item is due, from items, rounds and counters alone.

use super::*;
use crate::knowledge::{EntryKind, Interactions};
use karve_numerics::space::KnobSetting;
use proptest::prelude::*;

fn item(id: &str, expected_ratio: f64, effort: ItemEffort) -> AgendaItem {
    AgendaItem {
        id: id.into(),
        title: format!("do {id}"),
        expected_ratio,
        effort,
        ..AgendaItem::default()
    }
}

fn needing(id: &str, needs: &[&str]) -> AgendaItem {
    AgendaItem {
        needs: needs.iter().map(|id| (*id).to_owned()).collect(),
        ..item(id, 1.5, ItemEffort::Low)
    }
}

fn when(id: &str, condition: &str) -> AgendaItem {
    AgendaItem { when: vec![condition.into()], ..item(id, 1.5, ItemEffort::Low) }
}

fn of_entry(id: &str) -> AgendaItem {
    AgendaItem { how: ItemAction::Entry { entry: id.into() }, ..item(id, 1.5, ItemEffort::Low) }
}

fn known(id: &str, triggers: &[&str]) -> KnownEntry {
    KnownEntry {
        id: id.into(),
        kind: EntryKind::Optimization,
        triggers: triggers.iter().map(|text| (*text).to_owned()).collect(),
        expected_ratio: 1.2,
        ..KnownEntry::default()
    }
}

fn round<'a>(round: u32, task: &'a str, kept: bool) -> SettledItem<'a> {
    SettledItem { task, round, kept, ratio: kept.then_some(1.3), gave_up: false }
}

fn values() -> CounterValues {
    [("l1_miss_pct", 9.0)].map(|(name, value)| (name.to_owned(), value)).into()
}

/// The fates in one letter each, then the id that is due.
fn check(items: &[AgendaItem], past: &[SettledItem<'_>], entries: &[KnownEntry], want: &str) {
    let values = values();
    let now = AgendaFacts { values: &values, known: entries, ruled_out: &[] };
    let fates = assess(items, TRIES, past, now);
    let letters = fates.iter().map(|fate| match fate {
        ItemOutcome::Kept { .. } => 'k',
        ItemOutcome::Dropped { .. } => 'd',
        ItemOutcome::Skipped { .. } => 's',
        ItemOutcome::Open => 'o',
    });
    let letters: String = letters.collect();
    let due = due(items, &fates).map_or("-", |number| items[number].id.as_str());
    assert_eq!(format!("{letters} {due}"), want, "{fates:?}");
}

#[test]
fn impact_by_effort_comes_first_and_then_the_easier() {
    let items = [
        item("hard", 2.0, ItemEffort::High),
        item("easy", 1.3, ItemEffort::Low),
        item("big", 2.5, ItemEffort::Low),
        item("loss", 0.9, ItemEffort::Low),
        item("worse", 0.9, ItemEffort::High),
    ];
    let ids: Vec<&str> = order(&items).into_iter().map(|n| items[n].id.as_str()).collect();
    assert_eq!(ids, ["big", "easy", "hard", "loss", "worse"]);
    let equal = [item("a", 1.0, ItemEffort::High), item("b", 1.0, ItemEffort::Low)];
    assert_eq!(order(&equal), [1, 0]);
}

#[test]
fn of_equal_impact_the_less_risky_comes_first_whatever_is_listed_first() {
    use ItemEffort::{High, Low, Medium};
    let with = |id: &str, risk: ItemEffort| AgendaItem { risk, ..item(id, 1.4, Medium) };
    let items = [with("a", High), with("b", Medium), with("c", Low), item("d", 1.2, Low)];
    let ids: Vec<&str> = order(&items).iter().map(|n| items[*n].id.as_str()).collect();
    assert_eq!(ids, ["d", "c", "b", "a"]);
    // Charters without a risk load, and what is usual is not written.
    let text = serde_json::to_string(&items[1]).unwrap();
    assert!(!text.contains("risk"));
    assert_eq!(serde_json::from_str::<AgendaItem>(&text).unwrap(), items[1]);
}

#[test]
fn an_item_is_done_when_it_is_kept_or_its_tries_are_used() {
    let items = [item("a", 1.5, ItemEffort::Low), item("b", 1.2, ItemEffort::Low)];
    check(&items, &[], &[], "oo a");
    check(&items, &[round(1, "a", false)], &[], "oo a");
    check(&items, &[round(1, "a", true)], &[], "ko b");
    let twice = [round(1, "a", false), round(2, "a", false)];
    check(&items, &twice, &[], "do b");
    let gave_up = SettledItem { gave_up: true, ..round(1, "a", false) };
    check(&items, &[gave_up], &[], "do b");
    // A round for no item, or for an unknown one, changes nothing.
    check(&items, &[round(1, "c", true)], &[], "oo a");
}

#[test]
fn what_a_machine_does_in_one_way_is_done_once() {
    let knobs = AgendaItem {
        how: ItemAction::Knobs { config: [("A".to_owned(), "1".to_owned())].into() },
        ..item("a", 1.5, ItemEffort::Low)
    };
    check(&[knobs], &[round(1, "a", false)], &[], "d -");
}

#[test]
fn what_is_needed_comes_first_and_what_lacks_it_is_skipped() {
    let items = [needing("top", &["base"]), item("base", 1.01, ItemEffort::High)];
    check(&items, &[], &[], "oo base");
    check(&items, &[round(1, "base", true)], &[], "ok top");
    let dropped = [round(1, "base", false), round(2, "base", false)];
    check(&items, &dropped, &[], "sd -");
    let chain = [needing("c", &["b"]), needing("b", &["a"]), when("a", "l1_miss_pct < 4")];
    check(&chain, &[], &[], "sss -");
}

#[test]
fn a_condition_that_fails_skips_and_one_that_was_not_read_does_not() {
    check(&[when("a", "l1_miss_pct > 4")], &[], &[], "o a");
    check(&[when("a", "l1_miss_pct < 4")], &[], &[], "s -");
    check(&[when("a", "waves < 1")], &[], &[], "o a");
    // An item that was started is not abandoned because a counter moved.
    check(&[when("a", "l1_miss_pct < 4")], &[round(1, "a", false)], &[], "o a");
    let values = values();
    let now = AgendaFacts { values: &values, known: &[], ruled_out: &[] };
    let of = |text: &str| condition(&when("a", text), now);
    assert_eq!(of("waves < 1"), ItemCondition::Unknown("`waves < 1`".into()));
    let ItemCondition::Fails(why) = of("l1_miss_pct < 4") else {
        panic!("it fails");
    };
    assert_eq!(why, "`l1_miss_pct < 4` does not hold (l1_miss_pct=9)");
}

#[test]
fn the_triggers_of_an_entry_are_alternatives() {
    let fires = known("e", &["l1_miss_pct < 4", "l1_miss_pct > 8"]);
    check(&[of_entry("e")], &[], &[fires], "o e");
    let unknown = known("e", &["l1_miss_pct < 4", "waves < 1"]);
    check(&[of_entry("e")], &[], &[unknown], "o e");
    let fails = known("e", &["l1_miss_pct < 4", "l1_miss_pct < 5"]);
    check(&[of_entry("e")], &[], &[fails], "s -");
    check(&[of_entry("e")], &[], &[known("e", &[])], "o e");
    check(&[of_entry("e")], &[], &[], "o e");
}

#[test]
fn an_entry_that_is_refuted_or_does_not_go_with_what_was_kept_is_out() {
    let refuted =
        KnownEntry { status: EntryStatus::Refuted, refuted: "slower".into(), ..known("e", &[]) };
    check(&[of_entry("e")], &[], std::slice::from_ref(&refuted), "s -");
    check(&[of_entry("e")], &[round(1, "e", false)], &[refuted], "d -");
    let other = KnownEntry {
        interactions: Interactions {
            incompatible_with: vec!["a".into()],
            ..Interactions::default()
        },
        ..known("e", &[])
    };
    let items = [item("a", 9.0, ItemEffort::Low), of_entry("e")];
    check(&items, &[round(1, "a", true)], std::slice::from_ref(&other), "ks -");
    check(&items, &[round(1, "a", false)], &[other], "oo a");
}

#[test]
fn every_fault_is_told() {
    let check = |items: &[AgendaItem], want: &[(usize, &str)]| {
        let found = errors(items);
        assert_eq!(found.len(), want.len(), "{found:?}");
        for ((at, text), (number, part)) in found.iter().zip(want) {
            assert!(at == number && text.contains(part), "{found:?}");
        }
    };
    check(&[item("a", 1.5, ItemEffort::Low), needing("b", &["a"])], &[]);
    check(
        &[item("a b", f64::NAN, ItemEffort::Low), needing("c", &["d", "c"])],
        &[(0, "letters"), (0, "expected speedup"), (1, "needs d"), (1, "needs itself")],
    );
    check(&[needing("a", &["b"]), needing("b", &["a"])], &[(0, "through other")]);
    check(&[item("a", 1.1, ItemEffort::Low), item("a", 1.1, ItemEffort::Low)], &[(1, "already")]);
    check(
        &[when("a", "l1_miss_pct <"), when("b", "cash > 4")],
        &[(0, "cannot be read"), (1, "not a counter")],
    );
}

#[test]
fn an_agenda_comes_back_from_disk_and_says_what_it_is() {
    let agenda = Agenda {
        wanted: AgendaSource::Plan {
            bottleneck: String::new(),
            items: vec![when("a", "l1_miss_pct > 4"), of_entry("e")],
        },
        tries: 3,
    };
    let text = serde_json::to_string(&agenda).unwrap();
    assert_eq!(serde_json::from_str::<Agenda>(&text).unwrap(), agenda);
    assert_eq!(agenda.describe(), "a plan of 2 items");
    let short = r#"{"wanted": {"mode": "autopilot"}}"#;
    let read: Agenda = serde_json::from_str(short).unwrap();
    assert_eq!((read.tries, read.items()), (TRIES, None));
}

fn arbitrary_items() -> impl Strategy<Value = Vec<AgendaItem>> {
    let one = (1.0..4.0_f64, 0_usize..3, prop::collection::vec(0_usize..6, 0..3));
    prop::collection::vec(one, 0..6).prop_map(|items| {
        let made = items.iter().enumerate().map(|(number, (ratio, effort, needs))| AgendaItem {
            // Only earlier items are needed, so there is no cycle.
            needs: needs.iter().filter(|of| **of < number).map(|of| format!("i{of}")).collect(),
            ..item(&format!("i{number}"), *ratio, ItemEffort::ALL[*effort])
        });
        made.collect()
    })
}

proptest! {
    #![proptest_config(crate::testing::fixed(200))]

    /// Whatever is kept or dropped, every agenda ends: one item at a time, each after its
    /// prerequisites, none more often than allowed, none left open.
    #[test]
    fn every_agenda_comes_to_its_end(items in arbitrary_items(), luck in any::<u64>()) {
        prop_assert_eq!(errors(&items), vec![]);
        let ids: Vec<String> = items.iter().map(|item| item.id.clone()).collect();
        let none = CounterValues::default();
        let now = AgendaFacts { values: &none, known: &[], ruled_out: &[] };
        let mut past: Vec<SettledItem<'_>> = Vec::new();
        for number in 0..=items.len() * TRIES as usize {
            let fates = assess(&items, TRIES, &past, now);
            let Some(at) = due(&items, &fates) else {
                prop_assert!(fates.iter().all(|fate| *fate != ItemOutcome::Open), "{:?}", fates);
                return Ok(());
            };
            for need in &items[at].needs {
                prop_assert!(past.iter().any(|of| of.kept && of.task == *need));
            }
            let tried = past.iter().filter(|of| of.task == ids[at]).count();
            prop_assert!(tried < TRIES as usize);
            past.push(round(number as u32 + 1, &ids[at], (luck >> (number % 64)) & 1 == 1));
        }
        prop_assert!(false, "the agenda does not end");
    }
}

#[test]
fn an_item_of_knobs_takes_exactly_its_values() {
    let config = |pairs: &[(&str, &str)]| -> KnobSetting {
        let all = pairs.iter();
        all.map(|(name, value)| ((*name).into(), (*value).into())).collect()
    };
    let item = AgendaItem {
        id: "tiles".into(),
        how: ItemAction::Knobs { config: config(&[("TILE", "64")]) },
        ..AgendaItem::default()
    };
    let before = config(&[("TILE", "32"), ("UNROLL", "4")]);
    let check = |after: &[(&str, &str)], want: Option<&str>| {
        let got = item.misses_values(&before, &config(after));
        assert_eq!(got.as_deref(), want, "{after:?}");
    };
    check(&[("TILE", "64"), ("UNROLL", "4")], None);
    check(&[("NEW", "1"), ("TILE", "64"), ("UNROLL", "4")], None);
    check(&[("TILE", "128"), ("UNROLL", "4")], Some("wrong values for tiles: TILE is 128, not 64"));
    check(
        &[("TILE", "64"), ("UNROLL", "8")],
        Some("wrong values for tiles: UNROLL changed to 8, but should stay 4"),
    );
    check(&[], Some("wrong values for tiles: TILE is gone, but should be 64; UNROLL is gone"));
    let words = AgendaItem::default();
    assert_eq!(words.misses_values(&before, &KnobSetting::new()), None);
}
