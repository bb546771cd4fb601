use spans::{human, parse, Error};

#[test]
fn one_part_is_read() {
    assert_eq!(parse("90s"), Ok(90));
    assert_eq!(parse("2d"), Ok(172_800));
}

#[test]
fn all_parts_count() {
    assert_eq!(parse("1h30m"), Ok(5_400), "half of it is gone");
}

#[test]
fn what_is_no_span_is_refused() {
    assert_eq!(parse("1y"), Err(Error::Unit('y')));
    assert_eq!(parse("10"), Err(Error::Incomplete));
    assert_eq!(parse(""), Err(Error::Incomplete));
}

#[test]
fn no_time_is_no_seconds() {
    assert_eq!(human(0), "0s", "a span has a unit");
}

#[test]
fn what_is_written_can_be_read() {
    for seconds in [1, 59, 3_600, 86_399] {
        assert_eq!(parse(&human(seconds)), Ok(seconds));
    }
}
