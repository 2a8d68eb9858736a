use editdist::distance;

#[test]
fn known_distances() {
    assert_eq!(distance(b"kitten", b"sitting"), 3);
    assert_eq!(distance(b"", b"abc"), 3);
    assert_eq!(distance(b"flaw", b"lawn"), 2);
    assert_eq!(distance(b"same", b"same"), 0);
}
