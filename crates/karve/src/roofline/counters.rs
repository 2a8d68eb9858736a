//! How near a call is to its ceiling, as counters of a profile.

use karve_core::profile::roofline::Ceiling;
use karve_core::profile::{KernelProfile, Source};

/// Adds what the roofline says to the kernel that takes longest; where no profiler told of one,
/// that alone is a kernel, under the name of the operation.
pub fn add_ceiling(kernels: &mut Vec<KernelProfile>, op: &str, ceiling: &Ceiling) {
    if kernels.is_empty() {
        kernels.push(KernelProfile::named(op));
    }
    let Some(kernel) = kernels.first_mut() else {
        return;
    };
    let mut set = |name: &str, value: f64, quote: &str| {
        kernel.set(name, value, Source::at("roofline", 0, quote));
    };
    let quote = "metric.work over metric.bytes";
    set("intensity", ceiling.intensity, quote);
    set("ridge", ceiling.ridge, "peak over bandwidth of the device");
    if let Some(share) = ceiling.share {
        set(
            "ceiling_pct",
            share * 100.0,
            "least time over measured time",
        );
    }
    if let Some(time) = ceiling.time_s
        && kernel.value("duration_us").is_none()
    {
        let source = Source::at("benchmark", 0, "the time of a call, without a profiler");
        kernel.set("duration_us", time * 1e6, source);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use karve_core::profile::roofline::Limit;

    #[test]
    fn without_a_profiler_the_roofline_alone_makes_a_kernel() {
        let ceiling = Ceiling {
            work: 2e9,
            bytes: 1e9,
            intensity: 2.0,
            ridge: 10.0,
            ceiling: 1e11,
            limit: Limit::Bandwidth,
            floor_s: 0.02,
            time_s: Some(0.04),
            reached: Some(5e10),
            share: Some(0.5),
        };
        let mut kernels = Vec::new();
        add_ceiling(&mut kernels, "copy", &ceiling);
        assert_eq!(kernels[0].name, "copy");
        assert_eq!(kernels[0].value("ceiling_pct"), Some(50.0));
        assert_eq!(kernels[0].value("duration_us"), Some(40_000.0));
        let mut told = KernelProfile::named("k");
        told.set("duration_us", 7.0, Source::default());
        let mut kernels = vec![told];
        add_ceiling(&mut kernels, "copy", &ceiling);
        assert_eq!(kernels[0].value("duration_us"), Some(7.0));
        assert_eq!(kernels[0].value("ridge"), Some(10.0));
    }
}
