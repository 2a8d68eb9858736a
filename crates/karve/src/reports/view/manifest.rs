//! What the manifest shows of the charter: text as it was written, without the names of hidden
//! cases.

use super::mode;
use crate::reports::figures::goal;
use crate::reports::source::ReportSource;
use crate::reports::text::bounded;
use karve_core::charter::Branch;
use karve_numerics::case::CaseSet;
use minijinja::{Value, context};

/// The most characters of a command.
const COMMAND_MAX: usize = 2_000;

/// The context of the manifest. Hidden cases are counted, not listed.
pub(in crate::reports) fn manifest_page(source: &ReportSource<'_>) -> Value {
    let charter = source.charter;
    let text = |text: &String| text.clone();
    let command = |command: &String| bounded(command, COMMAND_MAX);
    let given = |given: &Option<String>| given.as_ref().map(command);
    // Under a contract karve calls the kernel itself.
    let needed = |given: &String| (!given.is_empty()).then(|| command(given));
    let texts = |all: &[String]| all.iter().map(text).collect::<Vec<_>>();
    let visible = charter.visible_cases().into_iter();
    let shapes = visible.filter_map(|case| source.campaign.case(case));
    let shapes = shapes.map(|case| context! { name => case.name, params => case.params });
    let quick = source.campaign.cases_of(CaseSet::Quick);
    let (target, commands) = (&charter.target, &charter.commands);
    context! {
        name => text(&charter.name),
        op => text(&target.op),
        backend => text(&target.backend),
        language => text(&target.language),
        device => text(&target.device),
        mode => mode(source),
        goal => given(&goal(source)),
        metric => text(&charter.metric.name),
        unit => text(&charter.metric.unit),
        shapes => shapes.collect::<Vec<_>>(),
        n_hidden => source.n_hidden(),
        quick => quick.iter().map(|case| source.case(*case)).collect::<Vec<_>>(),
        editable => texts(&charter.editable),
        build => given(&commands.build),
        test => needed(&commands.test),
        bench => needed(&commands.bench),
        quick_bench => given(&commands.quick_bench).or_else(|| {
            let script = charter.policy.baseline_round();
            script.map(|_| match charter.contract {
                Some(_) => "karve check".to_owned(),
                None => "python ${CAMPAIGN_DIR}/quick_test_bench.py".to_owned(),
            })
        }),
        quick_test => given(&commands.quick_test),
        profile => given(&commands.profile),
        branch => match &charter.branch {
            Branch::Named { name } => Some(text(name)),
            Branch::Hidden => None,
        },
        base => Some(source.campaign.base_commit()).filter(|base| !base.is_empty()),
        project_skill => given(&target.project_skill),
        // What the preset brings was not asked for.
        max_iterations => Some(charter.limits.rounds)
            .filter(|rounds| *rounds != charter.policy.rounds_max),
        wall_s => charter.limits.wall_s,
        created => text(&charter.created),
        constraints => texts(&target.constraints),
    }
}
