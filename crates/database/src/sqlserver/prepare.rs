//! Preparing statements: once per connection, outside the measured path. The server prepares them at the first
//! execution.

use std::sync::PoisonError;

use super::encode::{self, Wire};
use super::error::number;
use super::packet;
use super::session::SqlServerSession;
use super::statement::{Call, Declared, Form, Known, Prepared, Source, control_of_text};
use super::wire::{put_utf16, units};
use crate::placeholder::numbered;
use crate::{Error, ErrorClass, Result, Rows, Statement, Value};

/// Errors that no parameters can avoid: syntax, unknown columns, tables and procedures.
const WRONG: [i32; 8] = [102, 105, 156, 170, 207, 208, 2812, 4104];
/// The most parameters of a call.
const MOST_PARAMETERS: usize = 2100;

/// Names, types and table types of a procedure's parameters.
const PARAMETERS: &str = "SELECT p.name, TYPE_NAME(t.system_type_id), CAST(p.precision AS int), CAST(p.scale AS int), \
    CAST(p.max_length AS int), CAST(t.is_table_type AS int), SCHEMA_NAME(t.schema_id), t.name \
    FROM sys.all_parameters p JOIN sys.types t ON t.user_type_id = p.user_type_id \
    WHERE p.object_id = OBJECT_ID(@P1) AND p.parameter_id > 0 ORDER BY p.parameter_id";

impl SqlServerSession {
    /// Prepares a statement and appends it to the session's. With `parse_each_time` executions send its text. `names` gets
    /// the names of its columns.
    pub(crate) fn prepare_statement(
        &mut self,
        sql: &str,
        parse_each_time: bool,
        names: Option<&mut Vec<String>>,
    ) -> Result<Statement> {
        self.check_usable()?;
        let mut unused = Vec::new();
        let wants_names = names.is_some();
        let names = names.unwrap_or(&mut unused);
        names.clear();
        if let Some(control) = control_of_text(sql) {
            return Ok(control.statement());
        }
        self.commit_by_itself()?;
        let (text, parameters) = numbered(sql, "@P");
        if parameters > MOST_PARAMETERS {
            return Err(Error::usage(format!("a statement can have at most {MOST_PARAMETERS} parameters")));
        }
        let call = if parse_each_time { None } else { Call::parse(sql)? };
        let form = if let Some(call) = call {
            Form::Call(self.typed(call)?)
        } else {
            let declared = Declared { known: self.described(&text, parameters)?, given: Vec::new() };
            if wants_names {
                self.describe_columns(&text, &declared, parameters, names)?;
            }
            let sql = text.into_owned();
            if parse_each_time {
                Form::Text { sql, declared }
            } else {
                Form::Handle { sql, declared, handle: None }
            }
        };
        let parameters = if let Form::Call(call) = &form { call.parameters() } else { parameters };
        self.statements.push(Prepared { form, parameters, ignores_rows: false });
        Ok(Statement(self.statements.len() as u32 - 1))
    }

    /// Calls a procedure of the server with these texts and reads its result. An error in it leaves the transaction
    /// unchanged.
    fn ask(&mut self, procedure: &str, texts: &[&str]) -> Result<Rows> {
        self.open(packet::kind::RPC);
        self.out.extend_from_slice(&(units(procedure) as u16).to_le_bytes());
        put_utf16(&mut self.out, procedure);
        self.out.extend_from_slice(&[0, 0]);
        for text in texts {
            encode::unnamed(&mut self.out, Value::Text(text), self.answer.collation)?;
        }
        self.send()?;
        let failed = self.failed;
        let mut rows = Rows::new();
        let outcome = self.read_answer(&mut rows);
        // Unless the server has ended the transaction, its state is unchanged.
        if outcome.as_ref().is_err_and(|error| !error.class().is_retryable()) {
            self.failed = failed;
        }
        outcome.map(|()| rows)
    }

    /// The types that the server expects for the parameters; `None` where it does not report them. Queried once for all
    /// sessions.
    fn described(&mut self, sql: &str, parameters: usize) -> Result<Option<Vec<Known>>> {
        if parameters == 0 {
            return Ok(Some(Vec::new()));
        }
        let shared = self.shared.clone();
        if let Some(known) = shared.types.lock().unwrap_or_else(PoisonError::into_inner).get(sql) {
            return Ok(known.clone());
        }
        let known = match self.ask("sp_describe_undeclared_parameters", &[sql]) {
            Ok(rows) => in_order(&rows, parameters),
            Err(error) if self.broken || number(&error).is_some_and(|found| WRONG.contains(&found)) => {
                return Err(error);
            }
            Err(_) => None,
        };
        shared.types.lock().unwrap_or_else(PoisonError::into_inner).insert(sql.to_owned(), known.clone());
        Ok(known)
    }

    /// The names of the columns of the first result.
    fn describe_columns(
        &mut self,
        sql: &str,
        declared: &Declared,
        parameters: usize,
        names: &mut Vec<String>,
    ) -> Result<()> {
        let types = match declared.known {
            Some(_) => declared.text(),
            // Whatever they are, they do not change the names.
            None => Declared { known: None, given: vec![Wire::Text; parameters] }.text(),
        };
        let rows = if self.babelfish && parameters > 0 {
            // It knows no parameters there.
            self.ask("sp_describe_first_result_set", &[&without_parameters(sql)])?
        } else {
            self.ask("sp_describe_first_result_set", &[sql, &types])?
        };
        for row in 0..rows.len() {
            // is_hidden, column_ordinal, name
            if rows.int(row, 0)? == 0 {
                names.push(rows.optional(row, 2, Rows::text)?.unwrap_or_default().to_owned());
            }
        }
        Ok(())
    }

    /// Completes a call with the types of its results and of its tables. Queried once for all sessions.
    fn typed(&mut self, mut call: Call) -> Result<Call> {
        if !call.needs_types() {
            return Ok(call);
        }
        let shared = self.shared.clone();
        let key = format!("{call:?}");
        if let Some(known) = shared.calls.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(known.clone());
        }
        let rows = {
            let given = vec![Wire::Text];
            let statement = self.statements.len();
            let form = Form::Text { sql: PARAMETERS.into(), declared: Declared { known: None, given } };
            self.statements.push(Prepared { form, parameters: 1, ignores_rows: false });
            let mut rows = Rows::new();
            let outcome =
                self.execute_prepared(Statement(statement as u32), &[Value::Text(&call.name)], &mut rows);
            self.statements.truncate(statement);
            outcome.map(|()| rows)?
        };
        for (at, argument) in call.arguments.iter_mut().enumerate() {
            let named = |row: &usize| {
                argument.name.is_empty() && *row == at
                    || rows.text(*row, 0).is_ok_and(|name| name.eq_ignore_ascii_case(&argument.name))
            };
            let row = (0..rows.len()).find(named).ok_or_else(|| no_such_parameter(&call.name, at))?;
            if let Some(output) = &mut argument.output {
                *output = returned(&rows, row)?;
            }
            if let Source::Table { of, .. } = &mut argument.source {
                if rows.int(row, 5)? == 0 {
                    return Err(Error::usage(format!(
                        "the parameter {} of {} is not a table",
                        at + 1,
                        call.name
                    )));
                }
                *of = (rows.text(row, 6)?.to_owned(), rows.text(row, 7)?.to_owned());
            }
        }
        shared.calls.lock().unwrap_or_else(PoisonError::into_inner).insert(key, call.clone());
        Ok(call)
    }
}

fn no_such_parameter(procedure: &str, at: usize) -> Error {
    Error::new(
        ErrorClass::Statement,
        format!("there is no procedure {procedure} with a parameter for argument {}", at + 1),
    )
}

/// The types of `@P1` to the last, from the server's description. `None` where one is missing.
fn in_order(rows: &Rows, parameters: usize) -> Option<Vec<Known>> {
    let mut known = vec![None; parameters];
    for row in 0..rows.len() {
        // parameter_ordinal, name, suggested_system_type_id, suggested_system_type_name
        let at: usize = rows.text(row, 1).ok()?.strip_prefix("@P")?.parse().ok()?;
        *known.get_mut(at.checked_sub(1)?)? = Some(Known::new(rows.text(row, 3).ok()?));
    }
    known.into_iter().collect()
}

/// The type as which a value comes back.
fn returned(rows: &Rows, row: usize) -> Result<Wire> {
    Ok(match rows.text(row, 1)? {
        "bigint" | "int" | "smallint" | "tinyint" | "bit" => Wire::Int,
        "float" | "real" => Wire::Float,
        "decimal" | "numeric" => {
            Wire::Decimal { precision: rows.int(row, 2)? as u8, scale: rows.int(row, 3)? as u8 }
        }
        "money" | "smallmoney" => Wire::Decimal { precision: 19, scale: 4 },
        "datetime" | "datetime2" | "smalldatetime" | "date" | "datetimeoffset" => Wire::Time,
        _ if rows.int(row, 4)? == -1 => Wire::LongText,
        _ => Wire::Text,
    })
}

/// The statement with NULL in place of each `@P1`, `@P2`, …
fn without_parameters(sql: &str) -> String {
    let mut parts = sql.split("@P");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str("NULL");
        text.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    text
}
