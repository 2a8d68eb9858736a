//! Each format is read, written and read again.

use super::*;
use karve_core::knowledge::{Evidence, Impact, Retraction, Scope, assess, lint};
use proptest::prelude::*;

fn page(path: &str, text: &str) -> SourcePage {
    SourcePage { path: PathBuf::from(path), text: text.to_owned() }
}

const PAGE: &str = "# Swizzle the order of blocks\n\n## When to Apply\n\n- L2 hit rate < 90%\n\
    - DRAM throughput > 60 %\n\n## Mechanism\n\nNeighbors share rows.\n\n## Affected Metrics\n\n\
    L2 hit rate.\n\n## Implementation\n\n```python\n# no title\nx = 1\n```\n\n\
    ## Performance Evidence\n\nSource: local experiment\n\n\
    | Config | Before | After | Change |\n|---|---|---|---|\n\
    | b=32 s=1 | 12.5 us | 10.0 us | -20% |\n| b=1 | n/a | 3 us | - |\n\n\
    ## Pitfalls\n\nSmall grids.\n\n## Interactions\n\nO1\n";

#[test]
fn a_catalog_page_becomes_an_entry_and_a_page_again() {
    let path = "docs/knowledge/languages/cutile/optimizations/swizzle.md";
    let entry = parse(KnowledgeFormat::HyperMla, &page(path, PAGE)).unwrap().remove(0);
    assert_eq!((entry.id.as_str(), entry.kind), ("swizzle", EntryKind::Optimization));
    assert_eq!(entry.triggers, ["l2_hit_pct < 90", "dram_pct > 60"]);
    assert_eq!(entry.scope.language, ["cutile"]);
    assert_eq!((entry.evidence.len(), entry.evidence[0].ratio), (1, 1.25));
    assert_eq!(entry.basis, EntryBasis::Measured);
    assert!(entry.section("Recipe").unwrap().contains("x = 1"));
    let pages = render(KnowledgeFormat::HyperMla, &[&entry]).unwrap();
    assert_eq!(pages[0].path, PathBuf::from("knowledge/languages/cutile/optimizations/swizzle.md"));
    let again = parse(KnowledgeFormat::HyperMla, &pages[0]).unwrap().remove(0);
    assert_eq!((&again.title, &again.triggers), (&entry.title, &entry.triggers));
    assert_eq!(again.evidence[0].ratio, 1.25);
    let index = &pages[1].text;
    assert!(
        index.contains("| O1 | Swizzle the order of blocks | l2_hit_pct < 90; dram_pct > 60 |")
    );
    assert!(index.contains("| dram_pct > 60 | O1 |"), "{index}");
    let rows = parse(KnowledgeFormat::HyperMla, &pages[1]).unwrap();
    assert_eq!((rows[0].id.as_str(), &rows[0].aliases[0][..]), ("swizzle", "O1"));
}

#[test]
fn evidence_of_which_only_the_change_is_known_stays_on_a_page() {
    let text = PAGE.replace("| n/a | 3 us | - |", "| - ms | - | 1.5x |");
    let entry = parse(KnowledgeFormat::HyperMla, &page("o/x.md", &text)).unwrap();
    let reported = |entry: &Entry| {
        let e = entry.evidence[1].clone();
        (e.metric, e.before, e.after, e.ratio)
    };
    assert_eq!(reported(&entry[0]), ("ms".to_owned(), 0.0, 0.0, 1.5));
    let pages = render(KnowledgeFormat::HyperMla, &[&entry[0]]).unwrap();
    let again = parse(KnowledgeFormat::HyperMla, &pages[0]).unwrap();
    assert_eq!(reported(&again[0]), reported(&entry[0]));
}

#[test]
fn tips_are_read_by_device_operation_and_backend() {
    let text = "# Tips\n\n### 2026-04-23 15:19 round-7 — ROLLED BACK\n\
        - **Context**: fused barrier\n- Signal: -50.55%\n- Takeaway: atomics serialize\n\
        \x20 across groups\n- Applicability: all\n\n\
        ### 2026-04-24 round-8 — ACCEPTED\n- Context: x\n- Signal: +2%\n- Takeaway: y\n\
        - Applicability: z\n";
    let tips =
        parse(KnowledgeFormat::Tips, &page("mi355x/grouped_gemm/triton/tips.md", text)).unwrap();
    assert_eq!(tips.len(), 2);
    // A rolled-back tip is titled by what was tried, and says why.
    assert_eq!(tips[0].title, "fused barrier");
    assert_eq!(tips[0].status, EntryStatus::Refuted);
    let why = &tips[0].retracted.as_ref().unwrap().why;
    assert_eq!(why, "rolled back: atomics serialize across groups");
    assert_eq!((tips[1].title.as_str(), tips[1].status), ("y", EntryStatus::Candidate));
    assert_eq!(tips[0].scope.device, ["mi355x"]);
    assert_eq!((tips[0].kind, tips[0].date.as_str()), (EntryKind::Tip, "2026-04-23"));
    assert_eq!(
        lint(&tips[0], "2026-11-16").len(),
        1,
        "a device without evidence: {:?}",
        lint(&tips[0], "2026-11-16")
    );
    let pages = render(KnowledgeFormat::Tips, &[&tips[0], &tips[1]]).unwrap();
    assert_eq!(
        pages[0].path,
        PathBuf::from("historical_experience/mi355x/grouped_gemm/triton/tips.md")
    );
    let again = parse(KnowledgeFormat::Tips, &pages[0]).unwrap();
    assert_eq!(again, tips);
}

#[test]
fn a_case_keeps_its_figures_only_if_they_are_whole() {
    let text = "---\nid: moe-overlap\ntype: case\nfamily: communication\n\
        maturity: verified-locally\nbottleneck: communication\nsignals: [nccl-dominates, low-sm]\n\
        architectures: [sm100]\nmodel_scope: [moe]\npatterns: [overlap]\n\
        apply_via_kind: config\nknobs: [EP_SIZE, STREAMS]\n\
        specialists: [kernel-triton-specialist]\ncommits: [abc123]\n\
        log_markers: [overlap on]\neligibility: two or more ranks\n\
        phase: [decode]\naccuracy_risk: lossy\nextra_key: kept out\n\
        interactions:\n  composes-with: [cuda-graph]\n\
        measured: {metric: throughput, value: '+12.5%', gpu: B200, workload: decode, run_ref: r1, \
        date: 2026-08}\n---\n# Overlap experts\n\n## Applies when\n\nGPU idle > 30%\n\n\
        ## Counter-signals\n\n- few experts\n- one rank\n\n## Mechanism\n\nm\n\n## Verify\n\nv\n";
    let case = parse(KnowledgeFormat::Casebook, &page("x.md", text)).unwrap().remove(0);
    assert_eq!((case.kind, case.risk), (EntryKind::Case, Risk::Lossy));
    assert_eq!(case.counter_signals, ["few experts", "one rank"]);
    assert_eq!(case.triggers, ["gpu_idle_pct > 30"]);
    assert_eq!(case.evidence[0].ratio, 1.125);
    let pages = render(KnowledgeFormat::Casebook, &[&case]).unwrap();
    assert_eq!(pages[0].path, PathBuf::from("communication/moe-overlap.md"));
    let again = parse(KnowledgeFormat::Casebook, &pages[0]).unwrap().remove(0);
    assert_eq!(again.evidence, case.evidence);
    assert_eq!(again.counter_signals, case.counter_signals);
    assert_eq!(again.interactions, case.interactions);
    // Every key comes back as it was.
    for line in ["knobs:\n- EP_SIZE\n- STREAMS", "apply_via_kind: config", "commits:\n- abc123"] {
        assert!(pages[0].text.contains(line), "{line}: {}", pages[0].text);
    }
    assert_eq!(again.section("Casebook"), case.section("Casebook"));
    assert_eq!(case.section("Casebook").unwrap().lines().count(), 12);
    let some = text.replace("workload: decode, ", "");
    assert!(parse(KnowledgeFormat::Casebook, &page("x.md", &some)).is_err());
    let words = text.replace("'+12.5%'", "a lot");
    assert!(
        parse(KnowledgeFormat::Casebook, &page("x.md", &words)).unwrap()[0].evidence.is_empty()
    );
}

#[test]
fn a_wiki_page_and_a_playbook_are_read_and_written() {
    let text = "---\ntitle: Disable the bulk store\nkind: technique\nbasis: measured\n\
        arch: [sm90]\nkernels: [rmsnorm]\n---\n\n## Symptom\n\nDRAM < 40%\n\n## Evidence\n\n\
        - rms_norm store is 1.30x faster [2026-07, sm90, toolkit 13.1, N=5]\n";
    let entry =
        parse(KnowledgeFormat::Wiki, &page("technique/no-bulk-store.md", text)).unwrap().remove(0);
    assert_eq!((entry.evidence.len(), entry.evidence[0].n), (1, 5));
    assert_eq!(entry.triggers, ["dram_pct < 40"]);
    let pages = render(KnowledgeFormat::Wiki, &[&entry]).unwrap();
    assert_eq!(parse(KnowledgeFormat::Wiki, &pages[0]).unwrap()[0], entry);
    let text = "# Playbook\n\n## A. Gather to bulk loads (2–78×)\n\ntext\n\n### B. Persistent \
        (+50–300%)\n\noccupancy < 25%\n";
    let entries = parse(KnowledgeFormat::Playbook, &page("p.md", text)).unwrap();
    assert_eq!(entries.len(), 2);
    let impact = entries[1].impact.unwrap();
    assert_eq!((impact.low, impact.high), (1.5, 4.0));
    let again = render(KnowledgeFormat::Playbook, &[&entries[0], &entries[1]]).unwrap();
    let read = parse(KnowledgeFormat::Playbook, &again[0]).unwrap();
    assert_eq!(read[1].aliases, entries[1].aliases);
    assert_eq!(read[1].triggers, ["occupancy_pct < 25"]);
}

#[test]
fn a_wiki_page_has_a_place_for_every_field_and_follows_its_rules() {
    let all = crate::library::catalog::built_in();
    let all: Vec<&Entry> = all.iter().collect();
    assert_eq!(lost_fields(KnowledgeFormat::Wiki, &all), []);
    // All five kinds keep their names and their folders.
    for kind in ["language", "kernel", "technique", "pattern", "reference"] {
        let text = format!("---\ntitle: T\nkind: {kind}\nbasis: measured\n---\n\n## Text\n\nx\n");
        let read = parse(KnowledgeFormat::Wiki, &page("x/t.md", &text)).unwrap().remove(0);
        let again = render(KnowledgeFormat::Wiki, &[&read]).unwrap().remove(0);
        assert_eq!(again.path.to_str().unwrap(), format!("{kind}/t.md"));
        assert!(again.text.contains(&format!("kind: {kind}\n")), "{}", again.text);
        // What somebody adds to a page of ours is read, and nothing twice.
        let claim = "- rows are 1.5x faster [2026-08, sm90, toolkit 13.1, N=3]";
        let more = format!("{}\n## Evidence\n\n{claim}\n", again.text);
        let read = parse(KnowledgeFormat::Wiki, &page("x/t.md", &more)).unwrap().remove(0);
        assert_eq!((read.evidence.len(), read.evidence[0].n), (1, 3));
        let twice = render(KnowledgeFormat::Wiki, &[&read]).unwrap().remove(0);
        assert_eq!(parse(KnowledgeFormat::Wiki, &twice).unwrap()[0].evidence, read.evidence);
    }
    // Its lint: no state of work, and no evidence without its mark.
    for (section, why) in [
        ("## Open ideas\n\n- x\n", "\"Open ideas\" is banned"),
        ("## track record\n\nx\n", "\"track record\" is banned"),
        ("## Evidence\n\n- 2x faster\n", "no mark [YYYY-MM, arch, toolkit, N=k]"),
        ("## Evidence\n\n- 2x faster [2026-07, sm90]\n", "no mark"),
    ] {
        let text = format!("---\ntitle: T\nkind: technique\nbasis: measured\n---\n\n{section}");
        let refused = parse(KnowledgeFormat::Wiki, &page("x/t.md", &text)).unwrap_err();
        assert!(refused.contains(why), "{refused}");
    }
}

#[test]
fn what_is_read_from_elsewhere_is_a_candidate_and_garbage_is_refused() {
    for form in [
        KnowledgeFormat::HyperMla,
        KnowledgeFormat::Casebook,
        KnowledgeFormat::Tips,
        KnowledgeFormat::Wiki,
        KnowledgeFormat::Playbook,
        KnowledgeFormat::Karve,
    ] {
        for text in ["", "\u{0}\u{1}", "---\n---\n", "---\nkind: [\n---\n# x", "| a | b |\n"] {
            if let Ok(entries) = parse(form, &page("a/b.md", text)) {
                assert!(entries.iter().all(|e| e.status == EntryStatus::Candidate), "{form:?}");
            }
        }
    }
    assert_eq!(slug("  A (b) — C++ / d!  "), "a-b-c-d");
}

const OTHERS: [KnowledgeFormat; 5] = [
    KnowledgeFormat::HyperMla,
    KnowledgeFormat::Casebook,
    KnowledgeFormat::Tips,
    KnowledgeFormat::Wiki,
    KnowledgeFormat::Playbook,
];

/// An entry of any kind and status.
fn any_entry() -> impl Strategy<Value = Entry> {
    let kind = prop_oneof![
        Just(EntryKind::Optimization),
        Just(EntryKind::AntiPattern),
        Just(EntryKind::Case),
        Just(EntryKind::Tip),
        Just(EntryKind::Technique),
    ];
    let status = prop_oneof![
        Just(EntryStatus::Candidate),
        Just(EntryStatus::Verified),
        Just(EntryStatus::Refuted),
        Just(EntryStatus::Superseded),
    ];
    let risk = prop_oneof![Just(Risk::Lossless), Just(Risk::Rounding), Just(Risk::Lossy)];
    let words = "[a-z]{1,8}( [a-z=]{1,8}){0,4}";
    (kind, status, risk, "[a-z][a-z0-9-]{0,20}", words, 0..4_u8).prop_map(
        |(kind, status, risk, id, words, more)| Entry {
            id: id.clone(),
            kind,
            status,
            risk,
            title: words.clone(),
            date: "2026-11".into(),
            superseded_by: (status == EntryStatus::Superseded).then(|| "another".to_owned()),
            retracted: (more == 1 && status == EntryStatus::Refuted)
                .then(|| Retraction { date: "2026-11-16".into(), why: format!("why={words}") }),
            // A status that only evidence refutes is kept by formats that leave evidence out.
            evidence: (more == 2)
                .then(|| Evidence { ratio: 0.5, workload: words.clone(), ..Evidence::default() })
                .into_iter()
                .collect(),
            scope: Scope { device: vec!["cpu".into()], ..Scope::default() },
            sections: vec![EntrySection { heading: "Mechanism".into(), text: words }],
            ..Entry::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 128,
        rng_seed: proptest::test_runner::RngSeed::Fixed(7),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_form_carries_which_entry_it_is_how_it_stands_and_what_it_risks(
        entry in any_entry(),
    ) {
        let stands = assess(&entry).status;
        for form in OTHERS {
            let Some(page) = render(form, &[&entry]).unwrap().into_iter().next() else {
                panic!("{form:?} wrote nothing");
            };
            if page.path.ends_with("optimization-catalog.md") {
                let reported = lost_fields(form, &[&entry]);
                prop_assert!(reported.iter().any(|(what, n)| what.contains("entries") && *n == 1));
                continue;
            }
            let again = parse(form, &page).unwrap().remove(0);
            prop_assert_eq!(&again.id, &entry.id, "{:?}\n{}", form, page.text);
            prop_assert_eq!((again.kind, again.risk), (entry.kind, entry.risk));
            // Nothing imported is verified.
            let want = match stands {
                EntryStatus::Verified => EntryStatus::Candidate,
                other => other,
            };
            prop_assert_eq!(again.status, want, "{:?}\n{}", form, page.text);
            prop_assert_eq!(&again.retracted, &entry.retracted);
            prop_assert_eq!(&again.superseded_by, &entry.superseded_by);
            let index = render(form, &[&entry]).unwrap();
            if let Some(index) = index.get(1) {
                let row = parse(form, index).unwrap().remove(0);
                prop_assert_eq!((row.status, row.risk), (want, entry.risk));
            }
        }
    }
}

#[test]
fn a_mark_that_is_not_clear_says_nothing() {
    for line in [
        "> karve: id=../x status=refuted",
        "> karve: status=refuted",
        "> karve: id=x status=wonderful",
        "> karve: id=x nonsense",
        "karve: id=x",
    ] {
        assert_eq!(mark::marked(&Entry::default(), line), None, "{line}");
    }
}

#[test]
fn conditions_in_words_become_triggers_only_when_they_are_clear() {
    let check = |text: &str, want: &[&str]| assert_eq!(triggers_in(text), want, "{text}");
    check("when L2 hit < 90% and occupancy ≥ 25 %", &["l2_hit_pct < 90", "occupancy_pct >= 25"]);
    check("TC util: > 60", &["tensor_pct > 60"]);
    check("registers = 255", &["registers == 255"]);
    check("DRAM < 12,5%", &[]);
    check("the hundred <b> tags", &[]);
    check("spill > 3k", &[]);
    check("recipc > 3", &[]);
}

#[test]
fn what_a_form_loses_is_told_and_what_it_keeps_is_not() {
    let entry = Entry {
        id: "x".into(),
        title: "Do x".into(),
        date: "2026-11".into(),
        triggers: vec!["ipc < 1".into()],
        impact: Some(Impact { low: 1.1, high: 1.5 }),
        scope: Scope {
            device: vec!["cpu".into()],
            op: vec!["gemm".into()],
            backend: vec!["c".into()],
            ..Scope::default()
        },
        sections: vec![EntrySection { heading: "Mechanism".into(), text: "It is so.".into() }],
        ..Entry::default()
    };
    assert!(lost_fields(KnowledgeFormat::Karve, &[&entry]).is_empty());
    let of = |form| -> Vec<String> {
        let reported = lost_fields(form, &[&entry]).into_iter();
        reported.map(|(what, _)| what).collect()
    };
    assert!(of(KnowledgeFormat::Tips).contains(&"impact".to_owned()));
    assert!(!of(KnowledgeFormat::Tips).contains(&"scope".to_owned()));
    assert!(!of(KnowledgeFormat::Wiki).contains(&"sections".to_owned()));
    let tip = Entry { kind: EntryKind::Tip, ..entry.clone() };
    assert_eq!(
        lost_fields(KnowledgeFormat::HyperMla, &[&tip]),
        [("entries of that kind".to_owned(), 1)]
    );
}

#[test]
fn a_page_whose_entry_could_not_be_read_again_is_refused() {
    let long = PAGE.replace("Neighbors share rows.", &"Neighbors share rows. ".repeat(150_000));
    let path = "docs/knowledge/languages/cutile/optimizations/swizzle.md";
    let why = parse(KnowledgeFormat::HyperMla, &page(path, &long)).unwrap_err();
    assert!(why.contains("swizzle would be larger than") && why.contains("split"), "{why}");
}
