//! Layers of entries in temporary directories.

use super::markdown::render_entry;
use super::*;
use karve_core::knowledge::EntrySection;

fn entry(id: &str, title: &str) -> Entry {
    Entry {
        id: id.into(),
        title: title.into(),
        date: "2026-11".into(),
        sections: vec![EntrySection { heading: "Recipe".into(), text: "Do it.".into() }],
        ..Entry::default()
    }
}

fn library_layers(dir: &Path) -> LibraryLayers {
    let mut layers = LibraryLayers::default();
    for (layer, name) in
        [(Layer::User, "user"), (Layer::Project, "project"), (Layer::Staged, "staged")]
    {
        layers.put(layer, dir.join(name));
    }
    layers
}

#[test]
fn the_nearest_layer_wins_and_names_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let layers = library_layers(dir.path());
    layers.write(Layer::Staged, &entry("x", "staged")).unwrap();
    layers.write(Layer::User, &entry("x", "user")).unwrap();
    layers.write(Layer::User, &entry("y", "user")).unwrap();
    let library = layers.load().unwrap();
    let x = library.get("x").unwrap();
    assert_eq!((x.layer, x.entry.title.as_str()), (Layer::Staged, "staged"));
    assert_eq!(x.hides, [Layer::User]);
    assert_eq!(library.get("y").unwrap().layer, Layer::User);
    let error = library.get("z").unwrap_err().to_string();
    assert!(error.contains("karve knowledge search"), "{error}");
}

#[test]
fn an_entry_is_written_where_it_lies_already() {
    let dir = tempfile::tempdir().unwrap();
    let layers = library_layers(dir.path());
    let below = dir.path().join("project/languages/c");
    fs::create_dir_all(&below).unwrap();
    let text = render_entry(&entry("x", "old")).unwrap();
    fs::write(below.join("x-page.md"), text).unwrap();
    let path = layers.write(Layer::Project, &entry("x", "new")).unwrap();
    assert_eq!(path, below.join("x-page.md"));
    assert_eq!(layers.load().unwrap().get("x").unwrap().entry.title, "new");
}

#[test]
fn files_that_are_no_entries_are_named_and_the_rest_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let layers = library_layers(dir.path());
    layers.write(Layer::Project, &entry("x", "fine")).unwrap();
    let project = dir.path().join("project");
    fs::write(project.join("broken.md"), "no front matter").unwrap();
    fs::write(project.join("README.md"), "for people").unwrap();
    fs::write(project.join("bytes.md"), [0xff, 0xfe, 0x00]).unwrap();
    std::os::unix::fs::symlink("/dev/zero", project.join("link.md")).unwrap();
    let library = layers.load().unwrap();
    assert!(library.get("x").is_ok());
    assert_eq!(library.unreadable.len(), 3, "{:?}", library.unreadable);
    let odd = entry("../x", "out of the layer");
    assert!(layers.write(Layer::Project, &odd).is_err());
}

#[test]
fn an_id_names_one_file_and_leads_nowhere_else() {
    let dir = tempfile::tempdir().unwrap();
    let layers = library_layers(dir.path());
    let project = dir.path().join("project");
    fs::create_dir_all(&project).unwrap();
    let put = |file: &str, id: &str, title: &str| {
        let text = render_entry(&entry(id, title)).unwrap();
        fs::write(project.join(file), text).unwrap();
    };
    put("a.md", "twin", "first");
    put("b.md", "twin", "second");
    put("up.md", "../../up", "outside");
    put("root.md", "/etc/root", "outside");
    put("dash.md", "-x", "an option");
    let library = layers.load().unwrap();
    assert_eq!(library.get("twin").unwrap().entry.title, "first");
    assert_eq!(library.unreadable.len(), 4, "{:?}", library.unreadable);
    assert!(library.get("../../up").is_err());
    // Whatever is written can be read again.
    layers.write(Layer::Project, &entry("twin", "new")).unwrap();
    let library = layers.load().unwrap();
    assert_eq!(library.get("twin").unwrap().entry.title, "new");
    put("twin.md", "twin", "called so");
    let library = layers.load().unwrap();
    assert_eq!(library.get("twin").unwrap().entry.title, "called so");
}
