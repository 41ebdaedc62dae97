use super::*;

fn parse(text: &str) -> Result<Script, ScriptError> {
    Script::parse("t.sql", text, false, &mut Slots::default())
}

fn statements(text: &str) -> Vec<String> {
    parse(text)
        .unwrap()
        .steps
        .into_iter()
        .filter_map(|step| match step.command {
            Command::Sql(sql) => Some(sql.numbered),
            _ => None,
        })
        .collect()
}

#[test]
fn statements_end_at_semicolons_that_are_not_quoted() {
    for (text, expected) in [
        ("select 1; select 2", vec!["select 1", "select 2"]),
        ("select ';' , \";\", $$;$$, $a$ $$;$a$; x", vec!["select ';' , \";\", $$;$$, $a$ $$;$a$", "x"]),
        ("select 'it''s;'; x", vec!["select 'it''s;'", "x"]),
        ("select E'\\';'; x", vec!["select E'\\';'", "x"]),
        ("select '\\'; x", vec!["select '\\'", "x"]),
        ("-- a; b\nselect 1 -- c; d\n+ 2;", vec!["select 1 -- c; d\n+ 2"]),
        ("select /* ; /* ; */ ; */ 1; x", vec!["select /* ; /* ; */ ; */ 1", "x"]),
        (
            "create rule r as on insert to t do (a; b); x",
            vec!["create rule r as on insert to t do (a; b)", "x"],
        ),
        (
            "create function f() returns int begin atomic select case when true then 1 end; end; x",
            vec!["create function f() returns int begin atomic select case when true then 1 end; end", "x"],
        ),
        ("begin; end;", vec!["begin", "end"]),
        ("select 1 \\; select 2;", vec!["select 1 ; select 2"]),
        ("select 1\n\\sleep 1 us\nselect 2", vec!["select 1", "select 2"]),
        (";;select 1;;", vec!["select 1"]),
        ("select $1$ || a$b$c", vec!["select $1$ || a$b$c"]),
    ] {
        assert_eq!(statements(text), expected, "{text}");
    }
}

#[test]
fn variables_become_parameters_outside_quotes_and_text_everywhere() {
    let mut slots = Slots::default();
    let text = "select :a::int, ':a', '12:30:00', :a[1:2], \\:a, x[:i::int]";
    let script = Script::parse("t", text, false, &mut slots).unwrap();
    let Command::Sql(sql) = &script.steps[0].command else { panic!() };
    assert_eq!(sql.numbered, "select $1::int, ':a', '12:30:00', $2[1:2], :a, x[$3::int]");
    assert_eq!(sql.parameters, [0, 0, 1]);
    assert!(sql.parts.contains(&SqlPart::Text("', '12:30:00', ".into())), "{:?}", sql.parts);
}

#[test]
fn conditions_become_jumps() {
    let text = "\\set a 1\n\\if :a = 1\nx;\n\\elif :a = 2\ny;\n\\else\nz;\n\\endif\nw;";
    let script = parse(text).unwrap();
    let shape: Vec<String> = script
        .steps
        .iter()
        .map(|step| match &step.command {
            Command::Sql(sql) => sql.numbered.clone(),
            Command::Unless { target, .. } => format!("unless->{target}"),
            Command::Jump { target } => format!("jump->{target}"),
            _ => "set".into(),
        })
        .collect();
    assert_eq!(shape, ["set", "unless->4", "x", "jump->8", "unless->7", "y", "jump->8", "z", "w"]);
}

#[test]
fn lines_can_be_continued() {
    let script = parse("\\set a \\\n  1 + \\\r\n  2\nselect :a;").unwrap();
    assert_eq!(script.steps.len(), 2);
    assert_eq!(script.steps[1].line, 4);
}

#[test]
fn errors_show_the_place() {
    let error = parse("select 1;\n\\set x (1 +\n").unwrap_err();
    assert_eq!(error.to_string(), "t.sql:2:12: unexpected end of the expression\n\\set x (1 +\n           ^");
    for (text, line, column, message) in [
        ("\\set", 1, 5, "needs a variable"),
        ("\\set 1a 1", 1, 6, "not a valid variable name"),
        ("\\set a", 1, 7, "needs an expression"),
        ("\\set a 1 < 2 < 3", 1, 14, "unexpected \"<\""),
        ("\\set a nosuch(1)", 1, 8, "unexpected function name"),
        ("\\set a random(1)", 1, 8, "number of arguments"),
        ("\\set a 9223372036854775808", 1, 8, "exceeds the bigint range"),
        ("\\set a 92233720368547758080", 1, 8, "constant overflow"),
        ("\\set a 1 ? 2", 1, 10, "unexpected character"),
        ("x;\n  \\else", 2, 3, "no matching \\if"),
        ("\\endif", 1, 1, "no matching \\if"),
        ("\\if 1\n\\else\n\\else\n\\endif", 3, 1, "follows \\else"),
        ("x;\n\\if 1\ny;", 2, 1, "no matching \\endif"),
        ("\\gset", 1, 1, "must follow"),
        ("x \\gset\n\\gset", 2, 1, "must follow"),
        ("x \\gset a b", 1, 11, "at most one argument"),
        ("\\sleep", 1, 1, "needs a time"),
        ("\\sleep 1 h", 1, 10, "unrecognized time unit"),
        ("\\shell true", 1, 1, "not allowed"),
        ("\\setshell a true", 1, 1, "not allowed"),
        ("\\startpipeline\n\\startpipeline", 2, 1, "already open"),
        ("\\endpipeline", 1, 1, "outside a pipeline"),
        ("\\startpipeline\nx \\gset\n\\endpipeline", 2, 3, "not allowed in a pipeline"),
        ("\\startpipeline", 1, 1, "no matching \\endpipeline"),
        ("\\nosuch", 1, 1, "unknown meta command"),
        ("select 'a", 1, 8, "unterminated"),
        ("select é, /* b", 1, 11, "unterminated"),
        ("-- nothing", 1, 1, "no command"),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.message.contains(message), "{text}: {error}");
        assert_eq!((error.line, error.column), (line, column), "{text}: {error}");
    }
}

#[test]
fn sleeps_have_units() {
    for (text, micros) in [("\\sleep 3", 3_000_000), ("\\sleep 10 ms", 10_000), ("\\sleep 7us", 7)] {
        let script = parse(text).unwrap();
        let Command::Sleep(Duration::Fixed(duration)) = &script.steps[0].command else { panic!() };
        assert_eq!(duration.as_micros(), micros);
    }
}
