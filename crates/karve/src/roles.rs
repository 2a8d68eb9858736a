//! The roles that karve ships: parsed once, from `crates/karve/data/roles.toml`.

pub mod tileir;

use crate::library::situation::of_words;
use karve_core::charter::Target;
use karve_core::knowledge::Situation;
use karve_core::roles::{DeviceArch, RoleTable};
use karve_os::error::{CommandError, ErrorKind, Result};

/// The role table.
const BUILT_IN: &str = include_str!("../data/roles.toml");

/// The architecture families that language needs can name.
const FAMILIES: [&str; 2] = ["sm", "gfx"];

/// The role table that karve ships.
pub fn built_in() -> Result<RoleTable> {
    toml::from_str(BUILT_IN).map_err(|error| {
        CommandError::new(ErrorKind::Bug, "roles.toml is broken").cause(error.to_string())
    })
}

/// The architecture of a target's device, in the form that routing uses: `sm_90`, `gfx942`, `cpu`,
/// or nothing if it is unknown.
pub fn arch_of(target: &Target) -> String {
    let Target { op, backend, language, device, .. } = target;
    arch_in(&of_words(op, backend, language, device))
}

/// The same for a situation.
pub fn arch_in(at: &Situation) -> String {
    let numbered = |word: &&String| {
        DeviceArch::parse(word)
            .is_some_and(|arch| FAMILIES.contains(&&*arch.family) && arch.number.is_some())
    };
    let named = at.device.iter().find(numbered).cloned();
    let is_cpu = at.device.contains("cpu");
    named.unwrap_or_else(|| if is_cpu { "cpu".to_owned() } else { String::new() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use karve_core::profile::Predicate;
    use karve_core::roles::{Duty, RoleRequest, address, route};
    use std::collections::BTreeSet;

    fn target(device: &str) -> Target {
        Target {
            op: "matmul".into(),
            backend: "triton".into(),
            language: "Triton".into(),
            device: device.into(),
            ..Target::default()
        }
    }

    #[test]
    fn the_book_is_sound_and_has_the_roles_of_all_workflows() {
        let role_table = built_in().unwrap();
        for name in [
            "profiler",
            "designer",
            "reviewer",
            "cuda-graph-specialist",
            "profiling-specialist",
            "triton-specialist",
            "tileir-specialist",
            "cute-dsl-specialist",
            "distributed-specialist",
            "hip-optimizer",
            "flydsl-optimizer",
            "cutile-optimizer",
        ] {
            assert!(role_table.role(name).is_some(), "{name}");
        }
        for system in ["hyper-mla", "trtllm", "primus", "tilegym"] {
            assert!(role_table.role.iter().any(|role| role.system == system));
        }
        assert_eq!(role_table.reviewer().unwrap().name, "reviewer");
        assert_eq!(role_table.general().unwrap().name, "designer");
        for role in &role_table.role {
            karve_harness::project_file::glob_set(&role.writes).unwrap();
        }
    }

    #[track_caller]
    fn check_condition(when: &str) {
        let names = Predicate::parse(when).unwrap();
        for name in names.names() {
            assert!(karve_core::profile::counters::known(name).is_some(), "{when}: {name}");
        }
    }

    #[test]
    fn what_the_table_names_exists_and_its_conditions_can_be_read() {
        let table = built_in().unwrap();
        let language = |name: &str| {
            table.language(name).unwrap_or_else(|| panic!("there is no language {name}"))
        };
        let mut names = BTreeSet::new();
        for role in &table.role {
            assert!(names.insert(&role.name), "{}", role.name);
            assert!(!role.may.is_empty() && !role.title.trim().is_empty(), "{}", role.name);
            assert_eq!(role.may(Duty::Implement), !role.writes.is_empty(), "{}", role.name);
            role.language.iter().for_each(|name| assert_eq!(language(name).name, *name));
        }
        let mut words = BTreeSet::new();
        for of in &table.language {
            of.words.iter().for_each(|word| assert!(words.insert(word.to_lowercase()), "{word}"));
            of.needs.iter().for_each(|need| assert!(!need.family.is_empty(), "{}", of.name));
            of.leave.iter().for_each(|leave| check_condition(&leave.when));
            of.leave.iter().for_each(|leave| assert_ne!(language(&leave.to).name, of.name));
            if let Some(base) = &of.built_on {
                assert_eq!(language(base).built_on, None, "{}", of.name);
            }
        }
        table.usual.iter().for_each(|usual| assert!(table.language(&usual.language).is_some()));
        for call in &table.call {
            check_condition(&call.when);
            assert!(table.role(&call.role).is_some(), "{}", call.role);
        }
    }

    #[test]
    fn the_architecture_of_a_device_is_found_by_its_name() {
        for (device, arch) in [
            ("H200", "sm90"),
            ("RTX 5080", "sm120"),
            ("B200", "sm100"),
            ("MI300X", "gfx942"),
            ("cpu", "cpu"),
            ("a toaster", ""),
        ] {
            let found = DeviceArch::parse(&arch_of(&target(device)));
            assert_eq!(found, DeviceArch::parse(arch), "{device}");
        }
    }

    #[track_caller]
    fn check(intent: &str, arch: &str, kernel: &str, want: Result<&[&str], &str>) {
        let request = RoleRequest {
            intent: intent.into(),
            arch: arch.into(),
            op: "matmul".into(),
            kernel: kernel.into(),
            ..RoleRequest::default()
        };
        match (route(&built_in().unwrap(), &request), want) {
            (Ok(decision), Ok(steps)) => assert_eq!(decision.steps, steps, "{decision:#?}"),
            (Err(refused), Err(part)) => {
                assert!(refused.describe().contains(part), "{refused:#?}");
            }
            (got, want) => panic!("{got:#?}, wanted {want:?}"),
        }
    }

    #[test]
    fn the_rules_of_the_coordinator_and_of_the_orchestrator_hold() {
        check("a Triton kernel", "sm_90", "", Ok(&["triton-specialist"]));
        let two = ["triton-specialist", "tileir-specialist"];
        check("use nvtriton", "sm_100", "", Ok(&two));
        check("ENABLE_TILE=1", "sm_100", "triton", Ok(&["tileir-specialist"]));
        check("TileIR", "sm_90", "triton", Err("triton-specialist is the role"));
        check("TileIR or CuTe DSL", "sm_100", "", Err("name one"));
        check("CuTe DSL", "sm_100", "", Ok(&["cute-dsl-specialist"]));
        check("CuTe DSL", "sm_120", "", Err("not 120 or 121"));
        check("", "sm_90", "cutile", Ok(&["cutile-optimizer"]));
        check("", "gfx942", "hip", Ok(&["hip-optimizer"]));
        check("Triton", "gfx942", "triton", Ok(&["triton-specialist"]));
        check("", "cpu", "c", Ok(&["designer"]));
        let graphs = ["cuda-graph-specialist"];
        check("capture it in a CUDA graph", "sm_90", "cuda", Ok(&graphs));
        check("Apply CUDA Graph to my model", "sm_90", "triton", Ok(&graphs));
    }

    #[test]
    fn the_published_examples_go_to_their_specialists() {
        let two = ["triton-specialist", "tileir-specialist"];
        let tileir: &[&str] = &["tileir-specialist"];
        let triton: &[&str] = &["triton-specialist"];
        let cute: &[&str] = &["cute-dsl-specialist"];
        let profiled: &[&str] = &["profiling-specialist", "triton-specialist"];
        for (intent, arch, kernel, steps) in [
            ("Generate TileIR kernel", "sm_100", "", &two[..]),
            ("Optimize for TileIR", "sm_100", "", &two[..]),
            ("Convert Triton kernel to TileIR", "sm_100", "", tileir),
            ("Add TileIR configs to fused_gelu.py", "sm_100", "triton", tileir),
            ("Generate CuTe DSL kernel", "sm_100", "", cute),
            ("Write a Triton kernel", "sm_90", "", triton),
            ("Triton fusion", "sm_90", "", triton),
            ("Create element-wise fusion kernel", "sm_90", "", triton),
            ("", "sm_100", "", &two[..]),
            ("", "sm_100", "triton", tileir),
            ("", "sm_90", "", triton),
            ("Measure performance before and after", "sm_90", "triton", profiled),
            ("Enable FlashAttention", "sm_90", "triton", profiled),
            ("kernel fusion", "sm_90", "triton", profiled),
            ("gradient bucketing and comm overlap", "sm_90", "triton", &["distributed-specialist"]),
            ("FSDP configuration", "sm_90", "triton", &["distributed-specialist"]),
        ] {
            check(intent, arch, kernel, Ok(steps));
        }
        let table = built_in().unwrap();
        for (published, own) in [
            ("perf-torch-cuda-graph-specialist", "cuda-graph-specialist"),
            ("perf-profiling-specialist", "profiling-specialist"),
            ("kernel-triton-specialist", "triton-specialist"),
            ("kernel-tileir-specialist", "tileir-specialist"),
            ("kernel-cute-specialist", "cute-dsl-specialist"),
            ("kernel-designer", "designer"),
        ] {
            assert_eq!(table.role(published).unwrap().name, own);
        }
        let planner = table.planner().unwrap();
        assert!(!planner.may(Duty::Implement) && planner.writes.is_empty());
    }

    #[test]
    fn a_message_for_triton_is_not_for_the_cute_specialist() {
        let request = RoleRequest {
            intent: "a Triton softmax".into(),
            arch: "sm_90".into(),
            duty: Duty::Implement,
            ..RoleRequest::default()
        };
        let role_table = built_in().unwrap();
        let refused = address(&role_table, "cute-dsl-specialist", &request).unwrap_err();
        assert_eq!(refused.right.as_deref(), Some("triton-specialist"));
    }
}
