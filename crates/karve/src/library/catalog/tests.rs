//! The built-in entries are complete, agree with each other, and are listed in `docs/catalog.md`.

use super::super::markdown::render_entry;
use super::super::situation::of_words;
use super::*;
use karve_core::knowledge::{Action, EntryKind, EntrySection, Scope, assess, lint_all};
use karve_core::profile::{DiagnosisRuleSet, KernelProfile, Predicate, ProfileSource, diagnose};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn every_file_of_the_directory_is_built_in() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("knowledge");
    let names = std::fs::read_dir(directory).unwrap();
    let names: BTreeSet<String> =
        names.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    let built_in = FILES.iter().map(|(id, _)| format!("{id}.md"));
    assert_eq!(built_in.collect::<BTreeSet<_>>(), names);
}

#[test]
fn every_entry_is_read_and_named_as_its_file() {
    for (id, text) in FILES {
        let entry = parse_entry(text).unwrap_or_else(|error| panic!("{id}: {error}"));
        assert_eq!(&entry.id, id);
        let again = parse_entry(&render_entry(&entry).unwrap()).unwrap();
        assert_eq!(again, entry, "{id}");
    }
    assert_eq!(built_in().len(), FILES.len());
}

#[test]
fn no_entry_is_complained_of() {
    let complaints = lint_all(&built_in(), &karve_os::clock::latest_day());
    assert!(complaints.is_empty(), "{complaints:#?}");
}

#[test]
fn an_entry_about_something_that_a_kernel_does_not_have_is_not_offered() {
    let holds = |id: &str, at: &karve_core::knowledge::Situation| {
        built_in().iter().any(|entry| entry.id == id && entry.scope.holds(at))
    };
    let c = of_words("matvec", "c", "c++", "cpu");
    assert!(!holds("pow-to-multiply", &c.clone().with_source("y[i] += a[i * n + j] * x[j];")));
    assert!(holds("pow-to-multiply", &c.with_source("s += std::pow(x[i], 2.0);")));
    let numpy = of_words("blur", "numpy", "python", "cpu");
    assert!(!holds("autotune-in-hot-path", &numpy));
    assert!(holds("autotune-in-hot-path", &of_words("gemm", "triton", "triton", "H200")));
}

#[test]
fn every_trigger_can_hold_and_every_line_is_narrow() {
    for entry in built_in() {
        for trigger in &entry.triggers {
            let names = Predicate::parse(trigger).unwrap().names().len();
            assert!(names > 0, "{}: {trigger} uses no counter", entry.id);
        }
    }
    for (id, text) in FILES {
        // Neither a regular expression nor a list of flags nor an address may be broken.
        let keys = ["pattern:", "toolchain:", "https://"];
        let broken = |line: &str| keys.iter().any(|key| line.contains(key));
        let wide = text.lines().find(|line| line.chars().count() > 100 && !broken(line));
        assert_eq!(wide, None, "{id}");
    }
}

/// Whether a scope names a word in one of its lists.
fn names(scope: &Scope, word: &str) -> bool {
    let mut lists = [&scope.device, &scope.language, &scope.op, &scope.backend].into_iter();
    lists.any(|list| list.iter().any(|named| named == word))
}

/// The text of a page on one line.
fn page(id: &str) -> String {
    let (_, text) = FILES.iter().find(|(known, _)| *known == id).unwrap();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What the references of the workflow tell, by the page that tells it.
const REFERENCES: [(&str, &[&str]); 4] = [
    (
        "cutile-knobs",
        &[
            "`ct.gather`",
            "persistent grid",
            "`occupancy` from 1 to 32",
            "`num_ctas` of 1, 2, 4, 8 or 16",
            "tile sizes",
            "`latency` of a load or store: 1, 2, 3, 6, 10",
            "`allow_tma=False`",
            "`flush_to_zero` and `rounding_mode=APPROX`",
            "TF32",
            "`GROUP_SIZE_M` of 4, 8 or 16",
            "`padding_mode`",
            "memory-bound kernel the order is A, B, C, F, G, E, H",
            "compute-bound one D, G, C, I, B, E",
            "at most 30 settings",
        ],
    ),
    (
        "cutile-api-rules",
        &[
            "1. Import `cuda.tile as ct`",
            "2. The `index` of a load or store counts tiles",
            "3. Use Python's operators for integers",
            "4. Pass the accumulator of `ct.mma` as its third argument",
            "5. Pass no `None`",
            "6. Compute a grid on the host with `ct.cdiv`",
            "7. Convert with `ct.astype`",
            "8. Helpers that a kernel calls are plain functions",
            "9. Define a variable before a branch or loop",
            "10. There is no `break`",
            "11. A grid is a tuple of integers",
            "12. `ct.arange` begins at 0",
            "13. Take the strides of an NHWC tensor",
            "14. Where the tile is larger than the data, apply `ct.where`",
            "15. Mask a scatter",
            "16. Constants of a kernel are numbers or types, not strings",
            "17. Shapes of tiles are compile-time constants",
            "18. Leave no parameter that nothing reads",
        ],
    ),
    (
        "cutile-ir-dump",
        &[
            "CUDA_TILE_DUMP_TILEIR",
            "CUDA_TILE_DUMP_BYTECODE",
            "CUDA_TILE_LOGS",
            "CUDA_TILE_ENABLE_CRASH_DUMP",
            "CUDA_TILE_TESTING_DISABLE_TOKEN_ORDER",
            "DISABLE_CUTILE_TUNE",
            "--remarks",
            "An interval above 1000",
            "cuobjdump --dump-sass",
            "To isolate a cause",
            "at least 5%",
        ],
    ),
    (
        "cutile-patterns",
        &[
            "an index from memory, then TMA",
            "# a scalar",
            "a ragged range, without gather",
            "a persistent loop",
            "`ct.mma` takes 2-D and 3-D tiles",
            "| symptom | cause | remedy |",
            "| NaN |",
            "| far slower than expected |",
        ],
    ),
];

#[test]
fn the_references_of_tilegym_are_whole() {
    for (id, parts) in REFERENCES {
        let text = page(id);
        for part in parts {
            assert!(text.contains(part), "{id} says nothing of {part:?}");
        }
        let entry = built_in().into_iter().find(|entry| entry.id == id).unwrap();
        assert!(entry.scope.holds(&of_words("norm", "cutile", "cutile", "B200")), "{id}");
    }
}

/// The page tells an agent the lines at which the rules of `tilegym` decide.
#[test]
fn the_performance_model_of_cutile_is_that_of_the_rules() {
    use karve_core::profile::Bottleneck::{Balanced, Compute, Latency, Memory};
    let text = page("cutile-performance-model");
    let class = |counters: &[(&str, f64)]| {
        let mut kernel = KernelProfile::named("kernel");
        for (name, value) in counters {
            kernel.set(name, *value, ProfileSource::default());
        }
        diagnose(&kernel, DiagnosisRuleSet::Tilegym).bottleneck
    };
    assert!(text.contains("below 10 the kernel is memory-bound, above 50 compute-bound"), "{text}");
    for (intensity, want) in [(9.9, Memory), (10.0, Balanced), (50.0, Balanced), (50.1, Compute)] {
        assert_eq!(class(&[("intensity", intensity)]), want, "{intensity}");
    }
    assert!(text.contains("above 80% of its peak with compute below 50% is memory-bound"));
    assert!(text.contains("compute above 80% is compute-bound"));
    assert!(text.contains("an occupancy below 25% with neither is bound by latency"));
    let busy = |memory: f64, compute: f64, occupancy: f64| {
        class(&[("memory_pct", memory), ("compute_pct", compute), ("occupancy_pct", occupancy)])
    };
    assert_eq!((busy(80.1, 49.9, 10.0), busy(80.1, 50.0, 30.0)), (Memory, Balanced));
    assert_eq!((busy(60.0, 80.1, 10.0), busy(60.0, 80.0, 30.0)), (Compute, Balanced));
    assert_eq!((busy(60.0, 60.0, 24.9), busy(60.0, 60.0, 25.0)), (Latency, Balanced));
}

#[test]
fn the_catalog_covers_what_it_promises() {
    let entries = built_in();
    let of_kind = |kind: EntryKind| entries.iter().filter(|e| e.kind == kind).count();
    let of_scope = |word: &str| entries.iter().filter(|e| names(&e.scope, word)).count();
    assert!(entries.len() >= 100, "{}", entries.len());
    let kinds = [
        (EntryKind::Optimization, 70),
        (EntryKind::AntiPattern, 12),
        (EntryKind::Technique, 6),
        (EntryKind::Case, 3),
    ];
    for (kind, least) in kinds {
        assert!(of_kind(kind) >= least, "{}", kind.name());
    }
    for word in "cpu c rust cuda triton cutile cute hip flydsl tileir".split(' ') {
        let least = match word {
            "cpu" => 30,
            "cutile" | "cute" | "hip" | "flydsl" => 8,
            _ => 2,
        };
        assert!(of_scope(word) >= least, "{word}: {}", of_scope(word));
    }
    for op in "gemm attention softmax norm reduction elementwise grouped-gemm convolution sparse"
        .split(' ')
    {
        assert!(of_scope(op) >= 2, "{op}: {}", of_scope(op));
    }
    // Knowledge shared by all languages.
    let shared = entries.iter().filter(|e| e.scope.language.is_empty());
    assert!(shared.count() >= 20);
    let numbered: Vec<String> =
        (1..=11).map(|n| format!("O{n}")).chain((1..=8).map(|n| format!("A{n}"))).collect();
    let letters = ('A'..='J').map(|letter| format!("cutile-{letter}"));
    for number in numbered.into_iter().chain(letters) {
        let named = entries.iter().any(|e| e.aliases.contains(&number));
        assert!(named, "{number} of the published catalog is missing");
    }
    let applied = entries.iter().filter(|e| !e.apply.is_empty());
    assert!(applied.count() >= 25);
}

/// Which vendor's devices an entry is for, if all words of a list are words of one vendor.
fn vendor(scope: &Scope) -> Option<&'static str> {
    let starts = [
        ("amd", "amd rocm hip flydsl gfx mi3 cdna"),
        (
            "nvidia",
            "nvidia cuda cutile cute tileir nvtriton sm_ sm1 sm8 sm9 hopper blackwell ampere",
        ),
    ];
    let is_of = |words: &str, word: &String| words.split(' ').any(|start| word.starts_with(start));
    let lists = [&scope.device, &scope.language, &scope.backend];
    let found = starts.into_iter().find(|(_, words)| {
        let all_of = |list: &&Vec<String>| list.iter().all(|word| is_of(words, word));
        lists.iter().filter(|list| !list.is_empty()).any(all_of)
    });
    found.map(|(name, _)| name)
}

#[test]
fn no_entry_of_one_vendor_is_offered_for_the_other() {
    let nvidia = (["B200", "H200", "A100", "RTX 5090", "sm_120"], ["", "triton", "cuda", "cutile"]);
    let amd = (["MI300X", "MI355X", "gfx942", "gfx950", "amd"], ["", "triton", "hip", "flydsl"]);
    let mut seen = [0, 0];
    for entry in built_in() {
        let own = vendor(&entry.scope);
        seen[0] += usize::from(own == Some("amd"));
        seen[1] += usize::from(own == Some("nvidia"));
        for (other, (devices, languages)) in [("amd", &nvidia), ("nvidia", &amd)] {
            for device in devices {
                for language in languages {
                    let at = of_words("gemm", language, language, device);
                    let leaks = own == Some(other) && entry.scope.holds(&at);
                    assert!(!leaks, "{} is offered for {language} on {device}", entry.id);
                }
            }
        }
    }
    assert!(seen[0] >= 18 && seen[1] >= 35, "{seen:?}");
}

#[test]
fn copies_by_tma_are_not_offered_where_there_is_none() {
    let all = built_in();
    let entry = all.iter().find(|entry| entry.id == "cute-tma-pipeline").unwrap();
    let holds = |device: &str| entry.scope.holds(&of_words("gemm", "cute", "cute", device));
    assert!(["H200", "B200", "RTX 5090"].into_iter().all(holds));
    assert!(!holds("A100"));
}

#[test]
fn each_architecture_has_a_page_with_sources() {
    let entries = built_in();
    for (arch, device, language) in [
        ("sm_80", "A100", "cuda"),
        ("sm_90", "NVIDIA H200", "triton"),
        ("sm_100", "B200", "cutile"),
        ("sm_120", "RTX 5090", "cute-dsl"),
        ("gfx942", "MI300X", "hip"),
        ("gfx950", "MI355X", "flydsl"),
    ] {
        let at = of_words("gemm", language, language, device);
        let pages = entries.iter().filter(|e| e.id.starts_with("hardware-") && e.scope.holds(&at));
        let ids: Vec<&str> = pages.map(|page| page.id.as_str()).collect();
        let id = format!("hardware-{}", arch.replace('_', "-"));
        assert_eq!(ids, [id.as_str()], "{device}");
        let page = entries.iter().find(|entry| entry.id == id).unwrap();
        assert!(page.section("Sources").unwrap().contains("https://"), "{id}");
        let facts = page.section("Recipe").unwrap();
        for part in ["Registers", "Occupancy", "Matrix", "Formats", "banks", "Copies"] {
            assert!(facts.contains(part), "{id} says nothing of {part}");
        }
    }
}

#[test]
fn what_a_machine_applies_is_sound() {
    for entry in built_in() {
        for action in &entry.apply {
            if let Action::Top { line, .. } | Action::BeforeInnerLoops { line, .. } = action {
                assert!(!line.contains('\n'), "{}: {line}", entry.id);
            }
            if let Action::Rewrite { pattern, to, .. } = action {
                let groups = pattern.matches('(').count() - pattern.matches("(?:").count();
                let used = (1..=9).filter(|n| to.contains(&format!("${{{n}}}"))).max();
                assert!(used.unwrap_or(0) <= groups, "{}: {pattern}", entry.id);
            }
        }
    }
}

#[test]
fn all_evidence_can_be_taken_again() {
    let script = "crates/karve/benches/evidence/run.sh";
    let kernels = root().join("crates/karve/benches/evidence/kernels");
    let gpu_script = "testing/gpu-entries.py";
    let gpu_pairs = std::fs::read_to_string(root().join(gpu_script)).unwrap();
    let mut taken: BTreeSet<String> = BTreeSet::new();
    let mut on_gpu: BTreeSet<String> = BTreeSet::new();
    for entry in built_in() {
        for evidence in &entry.evidence {
            let words: Vec<&str> = evidence.run.split(' ').collect();
            assert_eq!(words.last(), Some(&entry.id.as_str()));
            if words[0] == gpu_script {
                assert!(gpu_pairs.contains(&format!("\"{}\"", entry.id)), "{}", entry.id);
                assert!(evidence.device.contains("H200"), "{}", entry.id);
                on_gpu.insert(entry.id.clone());
                continue;
            }
            assert_eq!(words[0], script, "{}", entry.id);
            taken.insert(entry.id.clone());
        }
    }
    assert!(on_gpu.len() >= 25, "{on_gpu:?}");
    let names = std::fs::read_dir(kernels).unwrap();
    let ids = names.filter_map(|file| {
        let name = file.unwrap().file_name().into_string().unwrap();
        let (id, ending) = name.split_once('.')?;
        (ending != "part.c").then(|| id.to_owned())
    });
    assert_eq!(taken, ids.collect::<BTreeSet<_>>());
}

#[test]
fn the_index_is_the_one_of_the_entries() {
    let path = root().join("docs/catalog.md");
    let text = render_index(&built_in());
    if std::env::var_os("KARVE_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let want = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, want, "KARVE_BLESS=1 writes docs/catalog.md again");
}

const PREAMBLE: &str = "\
# The built-in catalog

Generated from the entries in `crates/karve/knowledge`; `KARVE_BLESS=1 cargo test -p karve catalog`
writes it again. A ratio is a speedup: 1.1 is 10% faster. The impact is what an entry claims before
a trial; where there is evidence, the measured speedup and the resulting status are listed too.
`crates/karve/benches/evidence/run.sh` measures the evidence of the entries for CPUs, and
`testing/gpu-entries.py` that of entries for GPUs.
";

fn render_index(entries: &[Entry]) -> String {
    let mut text = PREAMBLE.to_owned();
    let of = |kinds: &[EntryKind]| -> Vec<&Entry> {
        entries.iter().filter(|e| kinds.contains(&e.kind)).collect()
    };
    let changes = of(&[EntryKind::Optimization, EntryKind::Tip]);
    let _ = write!(
        text,
        "\n## Optimizations ({})\n\n| ID | Optimization | Trigger Conditions | Est. Impact | \
         Pitfalls | Detail File |\n|---|---|---|---|---|---|\n",
        changes.len()
    );
    changes.iter().for_each(|entry| text.push_str(&optimization_row(entry)));
    let habits = of(&[EntryKind::AntiPattern]);
    let _ = write!(
        text,
        "\n## Anti-patterns ({})\n\n| ID | Anti-Pattern | Failure Mode | Source | Detail File |\n\
         |---|---|---|---|---|\n",
        habits.len()
    );
    habits.iter().for_each(|entry| text.push_str(&habit_row(entry)));
    let ways = of(&[EntryKind::Technique, EntryKind::Case]);
    let _ = write!(
        text,
        "\n## Techniques and cases ({})\n\n| ID | Kind | Title | Scope | Detail File |\n\
         |---|---|---|---|---|\n",
        ways.len()
    );
    for entry in ways {
        let (kind, scope) = (entry.kind.name(), entry.scope.describe());
        let _ = writeln!(
            text,
            "| {} | {kind} | {} | {scope} | {} |",
            id_of(entry),
            entry.title,
            link(entry)
        );
    }
    text + &render_states(entries)
}

/// The id, with its numbers in published catalogs.
fn id_of(entry: &Entry) -> String {
    if entry.aliases.is_empty() {
        return entry.id.clone();
    }
    format!("{} ({})", entry.id, entry.aliases.join(", "))
}

fn link(entry: &Entry) -> String {
    format!("[{0}.md](../crates/karve/knowledge/{0}.md)", entry.id)
}

/// The first sentence of a section, as a table cell.
fn gist(entry: &Entry, heading: &str) -> String {
    let text = entry.section(heading).unwrap_or_default();
    let paragraph = text.split("\n\n").next().unwrap_or_default();
    let line = paragraph.replace('\n', " ").replace('|', "\\|");
    match line.find(". ") {
        Some(end) => line[..=end].to_owned(),
        None => line,
    }
}

fn optimization_row(entry: &Entry) -> String {
    let triggers: Vec<String> = entry.triggers.iter().map(|t| format!("`{t}`")).collect();
    let when = if triggers.is_empty() { entry.scope.describe() } else { triggers.join(" or ") };
    let said = entry
        .impact
        .map_or("unknown".to_owned(), |impact| format!("{} to {}", impact.low, impact.high));
    let shown: Vec<String> = entry.evidence.iter().map(|e| format!("{:.2}", e.ratio)).collect();
    let impact = if shown.is_empty() {
        said
    } else {
        let standing = assess(entry).status.name();
        format!("{said}; shown {} ({standing})", shown.join(", "))
    };
    let pitfalls = gist(entry, "Pitfalls");
    format!(
        "| {} | {} | {} | {impact} | {pitfalls} | {} |\n",
        id_of(entry),
        entry.title,
        when.replace("||", "or"),
        link(entry)
    )
}

fn habit_row(entry: &Entry) -> String {
    let shown: Vec<String> = entry.evidence.iter().map(|e| format!("{:.2}", e.ratio)).collect();
    let source = if shown.is_empty() {
        entry.basis.name().to_owned()
    } else {
        format!("{}; shown {}", entry.basis.name(), shown.join(", "))
    };
    format!(
        "| {} | {} | {} | {source} | {} |\n",
        id_of(entry),
        entry.title,
        gist(entry, "Failure mode"),
        link(entry)
    )
}

/// From the state of a counter to the entries that it triggers.
fn render_states(entries: &[Entry]) -> String {
    let mut states: BTreeMap<(String, &str), BTreeSet<String>> = BTreeMap::new();
    for entry in entries {
        for trigger in &entry.triggers {
            for part in trigger.split("&&") {
                let words: Vec<&str> = part.split_whitespace().collect();
                let [counter, sign, ..] = words.as_slice() else {
                    continue;
                };
                let state = if sign.starts_with('<') { "low" } else { "high" };
                let ids = states.entry(((*counter).to_owned(), state)).or_default();
                ids.insert(id_of(entry));
            }
        }
    }
    let mut text = String::from(
        "\n## From the state of a counter to entries\n\n\
        An entry may use more than one counter; its triggers give the values.\n\n\
         | Counter | State | Entries |\n|---|---|---|\n",
    );
    for ((counter, state), ids) in states {
        let ids: Vec<String> = ids.into_iter().collect();
        let _ = writeln!(text, "| `{counter}` | {state} | {} |", ids.join(", "));
    }
    text
}

#[test]
fn a_gist_is_one_sentence_that_fits_a_cell() {
    let entry = Entry {
        sections: vec![EntrySection {
            heading: "Pitfalls".into(),
            text: "One | two\nthree. Four.\n\nFive.".into(),
        }],
        ..Entry::default()
    };
    assert_eq!(gist(&entry, "Pitfalls"), "One \\| two three.");
}
