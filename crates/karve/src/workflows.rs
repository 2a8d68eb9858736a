//! What is particular to a published workflow: the files that it expects of a campaign, as
//! templates, and its form of a profile.
//!
//! `reports` renders the templates. To add the files of a workflow, add a directory with its
//! templates and an entry to `WORKFLOWS`; ARCHITECTURE.md says what else a workflow needs.

/// A workflow with its forms.
pub struct Workflow {
    /// The files about the charter.
    pub charter: &'static [Form],
    /// The files about the whole campaign; they change with each round.
    pub campaign: &'static [Form],
    /// The files about the baseline, where it has the number of a round.
    pub baseline: &'static [Form],
    /// The files about one round.
    pub round: &'static [Form],
    /// Its form of a profile, which `karve profile` prints; there is no file.
    pub profile: &'static [Form],
    /// What other templates include; there is no file.
    pub parts: &'static [Form],
}

/// A page of a workflow.
pub struct Form {
    /// Where it is written, in the campaign's directory: `{round}` is the number of the round, and
    /// `{op}` the operation.
    pub path: &'static str,
    /// The name of the template; its last part decides how values are escaped.
    pub name: &'static str,
    /// The template; a page that renders to nothing is not written.
    pub template: &'static str,
}

const fn form(path: &'static str, name: &'static str, template: &'static str) -> Form {
    Form { path, name, template }
}

/// All workflows.
pub const WORKFLOWS: [Workflow; 4] = [HYPER_MLA, TRTLLM, PRIMUS, TILEGYM];

const HYPER_MLA: Workflow = Workflow {
    charter: &[],
    campaign: &[form(
        "docs/kernels/{op}.md",
        "hyper-mla/devlog.md",
        include_str!("workflows/hyper-mla/devlog.md.j2"),
    )],
    baseline: &[],
    round: &[],
    profile: &[form("", "hyper-mla/profile.md", include_str!("workflows/hyper-mla/profile.md.j2"))],
    parts: &[],
};

const TRTLLM: Workflow = Workflow {
    charter: &[],
    campaign: &[
        form(
            "results/optimizations.md",
            "trtllm/optimizations.md",
            include_str!("workflows/trtllm/optimizations.md.j2"),
        ),
        form(
            "results/casebook.txt",
            "trtllm/casebook.txt",
            include_str!("workflows/trtllm/casebook.txt.j2"),
        ),
    ],
    baseline: &[],
    round: &[
        form(
            "results/round-{round}.md",
            "trtllm/optimization.md",
            include_str!("workflows/trtllm/optimization.md.j2"),
        ),
        form(
            "results/round-{round}.verify.json",
            "trtllm/verify.json",
            include_str!("workflows/trtllm/verify.json.j2"),
        ),
        form(
            "results/round-{round}.benchmark.json",
            "trtllm/benchmark.json",
            include_str!("workflows/trtllm/benchmark.json.j2"),
        ),
    ],
    profile: &[form("", "trtllm/profile.md", include_str!("workflows/trtllm/profile.md.j2"))],
    parts: &[],
};

const PRIMUS: Workflow = Workflow {
    charter: &[form(
        "manifest.yaml",
        "primus/manifest.yaml",
        include_str!("workflows/primus/manifest.yaml.j2"),
    )],
    campaign: &[
        form(
            "logs/optimize.md",
            "primus/optimize.md",
            include_str!("workflows/primus/optimize.md.j2"),
        ),
        form(
            "logs/performance_trend.md",
            "primus/performance_trend.md",
            include_str!("workflows/primus/performance_trend.md.j2"),
        ),
        form("logs/cost.md", "primus/cost.md", include_str!("workflows/primus/cost.md.j2")),
        form(
            "verified_ineffective.jsonl",
            "primus/verified_ineffective.jsonl",
            include_str!("workflows/primus/verified_ineffective.jsonl.j2"),
        ),
        form("state/run.json", "primus/run.json", include_str!("workflows/primus/run.json.j2")),
        form(
            "state/phase_result/report.json",
            "primus/report.json",
            include_str!("workflows/primus/report.json.j2"),
        ),
    ],
    baseline: &[form(
        "rounds/round-{round}/summary.md",
        "primus/baseline.md",
        include_str!("workflows/primus/baseline.md.j2"),
    )],
    round: &[
        form(
            "state/phase_result/analyze_round{round}.json",
            "primus/analyze.json",
            include_str!("workflows/primus/analyze.json.j2"),
        ),
        form(
            "state/phase_result/optimize_round{round}.json",
            "primus/optimize.json",
            include_str!("workflows/primus/optimize.json.j2"),
        ),
        form(
            "state/phase_result/validate_round{round}.json",
            "primus/validate.json",
            include_str!("workflows/primus/validate.json.j2"),
        ),
        form(
            "state/phase_result/review_round{round}.json",
            "primus/review.json",
            include_str!("workflows/primus/review.json.j2"),
        ),
        form(
            "state/failures/round{round}.json",
            "primus/failure.json",
            include_str!("workflows/primus/failure.json.j2"),
        ),
    ],
    profile: &[form("", "primus/profile.md", include_str!("workflows/primus/profile.md.j2"))],
    parts: &[
        form("", "primus/audit.md", include_str!("workflows/primus/audit.md.j2")),
        form("", "primus/results.md", include_str!("workflows/primus/results.md.j2")),
    ],
};

const TILEGYM: Workflow = Workflow {
    charter: &[],
    campaign: &[form(
        "sandbox/perf_results.md",
        "tilegym/perf_results.md",
        include_str!("workflows/tilegym/perf_results.md.j2"),
    )],
    baseline: &[],
    round: &[],
    profile: &[],
    parts: &[],
};

/// The templates of all workflows by name.
pub fn templates() -> impl Iterator<Item = (&'static str, &'static str)> {
    WORKFLOWS.iter().flat_map(|workflow| {
        let Workflow { charter, campaign, baseline, round, profile, parts } = workflow;
        let forms = [charter, campaign, baseline, round, profile, parts];
        forms.into_iter().flat_map(|forms| forms.iter()).map(|form| (form.name, form.template))
    })
}
