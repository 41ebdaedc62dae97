//! What is printed and written of results, and how it is read again.

mod support;

mod arithmetic;
mod logs;
mod reading;
mod status;
mod texts;
