//! The contents of the built-in file, how a device is found, and what is refused.

use super::*;

fn built_in() -> DeviceCatalog {
    DeviceCatalog::built_in().expect("the built-in file")
}

fn value(device: &str, figure: DeviceFigure) -> f64 {
    let devices = built_in();
    let device = devices.find(device).expect("a device");
    device.figure(figure).map_or(f64::NAN, |known| known.value)
}

#[test]
fn the_promised_devices_are_there_and_every_figure_has_a_source() {
    let devices = built_in();
    for name in [
        "H100 SXM",
        "H100 PCIe",
        "H200",
        "A100 40GB",
        "A100 80GB",
        "B200",
        "L40S",
        "RTX 4090",
        "RTX 5090",
        "MI300X",
        "MI355X",
        "EPYC 9004",
        "EPYC 7003",
        "Xeon 4th gen",
        "Graviton3",
        "Graviton4",
        "Grace",
        "Apple M4",
    ] {
        assert!(devices.find(name).is_some(), "{name}");
    }
    for device in devices.all() {
        assert!(!device.figures.is_empty(), "{}", device.name);
        assert!(device.figures.contains_key(&DeviceFigure::MemoryRate));
        assert!(device.figures.values().all(|known| known.source.len() > 10));
        assert!(!device.scope.is_empty() && !device.arch.is_empty());
    }
}

#[test]
fn no_two_devices_have_the_same_name() {
    let devices = built_in();
    let names = |device: &DeviceSpec| {
        let own = std::iter::once(&device.name).chain(&device.aliases);
        own.map(|name| plain(name)).collect::<Vec<_>>()
    };
    let mut all: Vec<String> = devices.all().iter().flat_map(names).collect();
    let n = all.len();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), n);
}

#[test]
fn narrower_elements_are_never_slower() {
    for device in built_in().all() {
        let order = [
            DeviceFigure::Fp64,
            DeviceFigure::Fp32,
            DeviceFigure::Bf16,
            DeviceFigure::Fp8,
            DeviceFigure::Fp4,
        ];
        let peaks: Vec<f64> =
            order.into_iter().filter_map(|figure| Some(device.figure(figure)?.value)).collect();
        assert!(peaks.is_sorted(), "{}: {peaks:?}", device.name);
    }
}

#[test]
fn a_device_is_found_as_tools_print_it_and_only_by_its_whole_name() {
    let devices = built_in();
    let name = |text: &str| devices.find(text).map(|device| device.name.as_str());
    assert_eq!(name("NVIDIA H200"), Some("H200"));
    assert_eq!(name("nvidia h100 80gb hbm3"), Some("H100 SXM"));
    assert_eq!(name("Intel(R) Xeon(R) Platinum 8480+"), Some("Xeon Platinum 8480+"));
    assert_eq!(name("Intel(R) Xeon(R) Platinum 8480C"), None);
    assert_eq!(name("NVIDIA GeForce RTX 4090 D"), None);
    assert_eq!(name("Intel(R) Xeon(R) Processor"), None);
    assert_eq!(name(""), None);
    let error = devices.named("h2000").unwrap_err().to_string();
    assert!(error.contains("--device") && error.contains("H200"), "{error}");
}

#[test]
fn the_peak_of_a_cpu_follows_from_cores_clock_and_what_a_tick_does() {
    assert_eq!(value("EPYC 7763", DeviceFigure::Fp32), 64.0 * 3.5e9 * 32.0);
    assert_eq!(value("H200", DeviceFigure::Fp32), 67e12);
    assert!(value("Apple M4", DeviceFigure::Fp32).is_nan());
    let devices = built_in();
    let peaks = devices.find("H200").expect("a device").peaks(DeviceFigure::Bf16);
    assert_eq!((peaks.flops, peaks.bytes), (Some(989.5e12), Some(4.8e12)));
}

#[test]
fn a_file_of_the_user_adds_devices_and_overrides_single_figures() {
    let mut devices = built_in();
    let text = "[[device]]\nname = \"h200\"\nkind = \"gpu\"\naliases = [\"ours\"]\n\
                [[device.figures]]\nsource = \"measured by us\"\nmemory_rate = 4.2e12\n\
                [[device]]\nname = \"X1\"\nkind = \"cpu\"\n";
    devices.add(text, "devices.toml").expect("a good file");
    let device = devices.find("ours").expect("the alias");
    let rate = device.figure(DeviceFigure::MemoryRate).expect("a rate");
    assert_eq!((rate.value, rate.source.as_str()), (4.2e12, "measured by us"));
    assert_eq!(device.peaks(DeviceFigure::Fp32).flops, Some(67e12));
    assert_eq!(device.arch, "sm_90");
    assert!(devices.find("x1").is_some());
}

#[test]
fn a_bad_figure_is_refused_with_its_file_and_key() {
    let check = |figures: &str, want: &str| {
        let text =
            format!("[[device]]\nname = \"X\"\nkind = \"gpu\"\n[[device.figures]]\n{figures}");
        let error = DeviceCatalog::default().add(&text, "mine/devices.toml").unwrap_err();
        let error = error.to_string();
        assert!(error.contains("mine/devices.toml"), "{error}");
        assert!(error.contains(want), "{error}");
    };
    check("source = \"a\"\nfp32 = -1.0", "`device.X.figures.fp32`");
    check("source = \"a\"\nfp32 = nan", "`device.X.figures.fp32`");
    check("source = \"a\"\nfp32 = 67", "from 1e6 to 1e18");
    check("source = \"a\"\nfp32 = \"67 T\"", "`device.X.figures.fp32`");
    check("source = \"a\"\nfp33 = 1e12", "not a known figure");
    check("fp32 = 1e12", "`device.X.figures.source`");
    check("source = 3\nfp32 = 1e12", "`device.X.figures.source`");
    check("source = ", "cannot read");
    let unnamed = DeviceCatalog::default().add("[[device]]\nname = \" \"\nkind = \"cpu\"", "f");
    assert!(unnamed.unwrap_err().to_string().contains("name`"));
    let unknown = DeviceCatalog::default().add("[[device]]\nname = \"a\"\nkind = \"tpu\"", "f");
    assert!(unknown.is_err());
}

#[test]
fn the_file_of_a_user_lies_in_the_configuration() {
    let path = |config: Option<&str>, home: Option<&str>| {
        user_file(config.map(Into::into), home.map(Into::into))
    };
    let want = |text: &str| Some(PathBuf::from(text));
    assert_eq!(path(Some("/c"), Some("/h")), want("/c/karve/devices.toml"));
    assert_eq!(path(Some(""), Some("/h")), want("/h/.config/karve/devices.toml"));
    assert_eq!(path(Some("relative"), None), None);
    assert_eq!(path(None, None), None);
}
