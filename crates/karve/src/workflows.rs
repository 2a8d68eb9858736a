//! What is particular to a published workflow: the files that it expects of a campaign, as
//! templates, and its form of a profile.
//!
//! `reports` renders the templates. To add a workflow, add a directory and an entry below.

/// A workflow with its forms.
pub struct Workflow {
    /// The files about the whole campaign; they change with each round.
    pub campaign: &'static [Form],
    /// The files about one round.
    pub round: &'static [Form],
    /// Its forms of a profile, and parts of other forms.
    pub others: &'static [(&'static str, &'static str)],
}

/// A derived file of a campaign.
pub struct Form {
    /// Where it is written, in the campaign's directory: `{round}` is the number of the round, and
    /// `{op}` the operation.
    pub path: &'static str,
    /// The name of the template; its last part decides how values are escaped.
    pub name: &'static str,
    /// The template.
    pub template: &'static str,
}

/// All workflows.
pub const WORKFLOWS: [Workflow; 4] = [HYPER_MLA, TRTLLM, PRIMUS, TILEGYM];

const HYPER_MLA: Workflow = Workflow {
    campaign: &[Form {
        path: "docs/kernels/{op}.md",
        name: "hyper-mla/devlog.md",
        template: include_str!("workflows/hyper-mla/devlog.md.j2"),
    }],
    round: &[],
    others: &[("hyper-mla/profile.md", include_str!("workflows/hyper-mla/profile.md.j2"))],
};

const TRTLLM: Workflow = Workflow {
    campaign: &[Form {
        path: "results/optimizations.md",
        name: "trtllm/optimizations.md",
        template: include_str!("workflows/trtllm/optimizations.md.j2"),
    }],
    round: &[Form {
        path: "results/round-{round}.md",
        name: "trtllm/optimization.md",
        template: include_str!("workflows/trtllm/optimization.md.j2"),
    }],
    others: &[("trtllm/profile.md", include_str!("workflows/trtllm/profile.md.j2"))],
};

const PRIMUS: Workflow = Workflow {
    campaign: &[
        Form {
            path: "logs/optimize.md",
            name: "primus/optimize.md",
            template: include_str!("workflows/primus/optimize.md.j2"),
        },
        Form {
            path: "logs/performance_trend.md",
            name: "primus/performance_trend.md",
            template: include_str!("workflows/primus/performance_trend.md.j2"),
        },
        Form {
            path: "logs/cost.md",
            name: "primus/cost.md",
            template: include_str!("workflows/primus/cost.md.j2"),
        },
        Form {
            path: "logs/verified_ineffective.jsonl",
            name: "primus/verified_ineffective.jsonl",
            template: include_str!("workflows/primus/verified_ineffective.jsonl.j2"),
        },
    ],
    round: &[],
    others: &[
        ("primus/manifest.yaml", include_str!("workflows/primus/manifest.yaml.j2")),
        ("primus/profile.md", include_str!("workflows/primus/profile.md.j2")),
    ],
};

const TILEGYM: Workflow = Workflow {
    campaign: &[Form {
        path: "perf_results.md",
        name: "tilegym/perf_results.md",
        template: include_str!("workflows/tilegym/perf_results.md.j2"),
    }],
    round: &[],
    others: &[],
};

/// The templates of all workflows by name.
pub fn templates() -> impl Iterator<Item = (&'static str, &'static str)> {
    WORKFLOWS.iter().flat_map(|workflow| {
        let forms = workflow.campaign.iter().chain(workflow.round);
        forms.map(|form| (form.name, form.template)).chain(workflow.others.iter().copied())
    })
}
