//! Which CPUs a benchmark is pinned to.

use super::*;

#[test]
fn a_benchmark_is_held_to_cpus_that_karve_may_use() {
    let allowed = cpu::allowed();
    assert!(cpus_of(&Pin::No).unwrap().is_empty());
    let auto = cpus_of(&Pin::Auto).unwrap();
    match allowed.as_slice() {
        [_] => assert!(auto.is_empty(), "one CPU leaves no choice"),
        _ => assert_eq!(auto, allowed[allowed.len() - 1..]),
    }
    let first = allowed[..1].to_vec();
    let pin = Pin::Cpus { cpus: first.clone() };
    assert_eq!(cpus_of(&pin).unwrap(), first);
    let pin = Pin::Cpus { cpus: vec![8191] };
    let error = cpus_of(&pin).unwrap_err();
    assert!(error.message.contains("CPU 8191"), "{error}");
}
