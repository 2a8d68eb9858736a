//! The rules of the audit: what each one means, and its severity. `docs/audit.md` lists them.

use karve_core::integrity::{Bucket, Severity};

/// A rule of the audit.
#[derive(Clone, Copy, Debug)]
pub struct AuditRuleSpec {
    /// Its name in `[audit]` and in Findings.
    pub name: &'static str,
    /// Its severity, unless `[audit]` says otherwise.
    pub severity: Severity,
    /// Where a gain would come from, if the rule says.
    pub bucket: Option<Bucket>,
    /// What it finds.
    pub finds: &'static str,
}

const fn forbidden(name: &'static str, finds: &'static str) -> AuditRuleSpec {
    AuditRuleSpec { name, severity: Severity::Forbidden, bucket: None, finds }
}

const fn suspicious(name: &'static str, finds: &'static str) -> AuditRuleSpec {
    AuditRuleSpec { name, severity: Severity::Suspicious, bucket: None, finds }
}

const fn advice(name: &'static str, finds: &'static str) -> AuditRuleSpec {
    AuditRuleSpec { name, severity: Severity::Advice, bucket: None, finds }
}

const fn of(bucket: Bucket, rule: AuditRuleSpec) -> AuditRuleSpec {
    AuditRuleSpec { bucket: Some(bucket), ..rule }
}

/// All rules, the most severe first.
pub const RULES: [AuditRuleSpec; 47] = [
    of(
        Bucket::W2,
        forbidden(
            "identity-cache",
            "something is cached by the identity of an input: id(), data_ptr(), its address",
        ),
    ),
    of(
        Bucket::W3,
        forbidden("content-cache", "something is cached by a hash or a sample of the inputs"),
    ),
    of(Bucket::W3, forbidden("tensor-memo", "a function that takes tensors is memoized")),
    of(Bucket::W2, forbidden("weak-reference", "weak references, which object caches need")),
    forbidden("timer", "clocks, cycle counters, timing events, and sleeping"),
    forbidden("argv-read", "reading how the process was started"),
    forbidden("process", "starting processes"),
    forbidden("network", "sockets and anything built on them"),
    forbidden("file-write", "writing files or shared memory, which other runs could read"),
    forbidden("dynamic-load", "loading libraries and symbols at run time"),
    forbidden("dynamic-code", "code made from text, and modules found by name"),
    forbidden("frames", "walking stack frames or live objects, tracing"),
    forbidden("patching", "changing imported modules and their functions"),
    forbidden("output-object", "objects that compare or compute when they are inspected"),
    forbidden("reference-call", "the reference, or another file of the harness, is used"),
    forbidden("raw-syscall", "system calls by number, filters on them"),
    forbidden("memory-tamper", "the pages, memory or file descriptors of processes"),
    forbidden("exit-hook", "code that runs at exit or on signals"),
    forbidden("early-exit", "ending or signaling processes, exiting without a result"),
    forbidden("tolerance", "an existing tolerance became looser"),
    forbidden("harness-define", "a build defines a name that the harness reads"),
    forbidden("linker-trick", "a build wraps symbols, preloads, or loads plugins"),
    of(
        Bucket::W1,
        suspicious("weight-cache", "prepared weights are cached by identity and version"),
    ),
    suspicious("static-state", "state that outlives a call is written and decides a branch"),
    suspicious("call-counter", "calls are counted, and the count decides a branch"),
    suspicious("replay", "an output is copied from data of an earlier call"),
    suspicious("value-memo", "a function of plain values is memoized"),
    suspicious("env-read", "the environment is read"),
    suspicious("env-write", "the environment is changed"),
    suspicious("file-read", "files are read"),
    suspicious("foreign-call", "foreign libraries are loaded from a script"),
    suspicious("background", "threads or streams that nothing waits for"),
    suspicious("scheduling", "priorities, affinity and limits of processes"),
    suspicious("prints", "output, which may look like that of the harness"),
    suspicious("load-hook", "code that runs when the library is loaded"),
    suspicious("float-env", "process-wide rounding, denormal or precision modes"),
    suspicious("fast-math", "flags that let the compiler change results"),
    suspicious("library-call", "a library does the work, but the incumbent used none"),
    suspicious("fallback", "kernel errors are caught and something else is done"),
    suspicious("shape-constant", "a value of a case is compared with or hard-coded"),
    suspicious("new-tolerance", "a new tolerance"),
    suspicious("cache-policy", "data is pinned in caches or memory beyond the call"),
    suspicious("unaudited", "a file that is too large or takes too long to read"),
    advice("threads", "threads, OpenMP and parallel libraries"),
    advice("precision", "types with fewer bits than before"),
    advice("inline-asm", "inline assembly"),
    advice("unparsed", "text that does not parse"),
];

/// Rules that only determine the bucket of an honest change.
pub const KINDS: [AuditRuleSpec; 3] = [
    of(Bucket::K2, advice("layout-copy", "data is packed, transposed or shuffled first")),
    of(Bucket::K3, advice("fused-launch", "fewer launches than before")),
    advice("static-buffer", "a buffer or table that outlives a call"),
];

/// The rule with that name.
pub fn rule(name: &str) -> Option<&'static AuditRuleSpec> {
    RULES.iter().chain(&KINDS).find(|rule| rule.name == name)
}

/// All names, for `[audit]`.
pub fn rule_names() -> impl Iterator<Item = &'static str> {
    RULES.iter().chain(&KINDS).map(|rule| rule.name)
}
