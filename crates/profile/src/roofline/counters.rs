//! How close a call is to its ceiling, as counters of a profile.

use karve_core::profile::{KernelProfile, ProfileSource};
use karve_core::roofline::Ceiling;

/// A function with this share of the instructions counts as the whole, in percent.
const WHOLE_PCT: f64 = 90.0;

/// Adds the roofline figures of a call to the kernel that represents the call: the one from the
/// editable files, the only one, one on a device, or the whole program. A function of a library or
/// of the harness is not the call: if a profiler reported only those, or nothing, the call becomes
/// a separate kernel under the name of the operation. The source names the roof. For a call that
/// is faster than possible, only its time is used.
pub fn add_ceiling(kernels: &mut Vec<KernelProfile>, op: &str, whose: &str, ceiling: &Ceiling) {
    let is_call = |kernel: &KernelProfile| {
        let share = kernel.value("inst_share_pct");
        kernel.editable || share.is_none_or(|share| share >= WHOLE_PCT)
    };
    if !kernels.first().is_some_and(is_call) {
        kernels.insert(0, KernelProfile::named(op));
    }
    let Some(kernel) = kernels.first_mut() else {
        return;
    };
    let mut set = |name: &str, value: f64, quote: &str| {
        kernel.set(name, value, ProfileSource::at("roofline", 0, quote));
    };
    if !ceiling.is_impossible() {
        let quote = "metric.work divided by metric.bytes";
        set("intensity", ceiling.intensity, quote);
        let quote = format!("peak divided by bandwidth ({whose})");
        set("ridge", ceiling.ridge, &quote);
    }
    if let (Some(share), false) = (ceiling.share, ceiling.is_impossible()) {
        set(
            "ceiling_pct",
            share * 100.0,
            &format!("minimum time ({whose}) divided by measured time"),
        );
    }
    if let Some(time) = ceiling.time_s
        && kernel.value("duration_us").is_none()
    {
        let source = ProfileSource::at("benchmark", 0, "the time of a call, without a profiler");
        kernel.set("duration_us", time * 1e6, source);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use karve_core::roofline::CeilingLimit;

    #[test]
    fn without_a_profiler_the_roofline_alone_makes_a_kernel() {
        let ceiling = Ceiling {
            work: 2e9,
            bytes: 1e9,
            intensity: 2.0,
            ridge: 10.0,
            ceiling: 1e11,
            limit: CeilingLimit::Bandwidth,
            floor_s: 0.02,
            time_s: Some(0.04),
            reached: Some(5e10),
            share: Some(0.5),
        };
        let mut kernels = Vec::new();
        add_ceiling(&mut kernels, "copy", "L2, one core", &ceiling);
        assert_eq!(kernels[0].name, "copy");
        assert_eq!(kernels[0].value("ceiling_pct"), Some(50.0));
        assert_eq!(kernels[0].value("duration_us"), Some(40_000.0));
        let mut reported = KernelProfile::named("k");
        reported.set("duration_us", 7.0, ProfileSource::default());
        let mut kernels = vec![reported];
        add_ceiling(&mut kernels, "copy", "L2, one core", &ceiling);
        assert_eq!(kernels[0].value("duration_us"), Some(7.0));
        assert_eq!(kernels[0].value("ridge"), Some(10.0));
        // A call three times faster than possible has wrong work or wrong bytes.
        let wrong = Ceiling { share: Some(3.0), ..ceiling };
        let mut kernels = Vec::new();
        add_ceiling(&mut kernels, "copy", "L2, one core", &wrong);
        assert_eq!(kernels[0].value("ceiling_pct"), None);
        assert_eq!(kernels[0].value("intensity"), None);
        assert_eq!(kernels[0].value("duration_us"), Some(40_000.0));
        // A function of a library is not the call; the editable one that calls it is.
        let function = |name: &str, share: f64, editable: bool| {
            let mut kernel = KernelProfile::named(name);
            kernel.set("inst_share_pct", share, ProfileSource::default());
            kernel.editable = editable;
            kernel
        };
        let mut kernels = vec![function("expf", 46.0, false)];
        add_ceiling(&mut kernels, "softmax", "L2, one core", &ceiling);
        assert_eq!((kernels.len(), &*kernels[0].name), (2, "softmax"));
        assert_eq!(kernels[1].value("ceiling_pct"), None);
        let mut kernels = vec![function("row_softmax", 70.0, true)];
        add_ceiling(&mut kernels, "softmax", "L2, one core", &ceiling);
        assert_eq!(kernels[0].value("ceiling_pct"), Some(50.0));
    }
}
