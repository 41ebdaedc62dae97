//! A headless Chromium, controlled with the DevTools protocol over a pipe.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Timeout of each wait: the machine may be busy.
const LIMIT: Duration = Duration::from_mins(1);

/// A browser with one page. It ends when dropped.
pub(crate) struct Browser {
    process: Child,
    commands: File,
    messages: Receiver<Value>,
    session: Option<String>,
    next: u64,
    /// Exceptions in the page, and violations of its content security policy.
    pub(crate) faults: Vec<String>,
    /// The URLs that the page requested.
    pub(crate) requests: Vec<String>,
}

impl Browser {
    /// Starts Chromium with its profile in `directory`.
    pub(crate) fn start(directory: &Path) -> Self {
        let (input, output) = (directory.join("to-browser"), directory.join("from-browser"));
        for pipe in [&input, &output] {
            assert!(Command::new("mkfifo").arg(pipe).status().unwrap().success());
        }
        // The protocol uses descriptors 3 and 4, which a shell opens.
        let process = Command::new("sh")
            .args(["-c", "exec chromium \"$@\" 3<\"$TO\" 4>\"$FROM\"", "sh"])
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
            .args(["--disable-dev-shm-usage", "--remote-debugging-pipe", "--hide-scrollbars"])
            .arg(format!("--user-data-dir={}", directory.join("profile").display()))
            .arg("about:blank")
            .env("TO", &input)
            .env("FROM", &output)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let commands = File::options().write(true).open(&input).unwrap();
        let mut answers = BufReader::new(File::open(&output).unwrap());
        let (send, messages) = channel();
        std::thread::spawn(move || {
            let mut message = Vec::new();
            while answers.read_until(0, &mut message).is_ok_and(|read| read > 0) {
                message.pop();
                let Ok(value) = serde_json::from_slice(&message) else { return };
                if send.send(value).is_err() {
                    return;
                }
                message.clear();
            }
        });
        let (faults, requests) = (Vec::new(), Vec::new());
        let mut browser = Self { process, commands, messages, session: None, next: 0, faults, requests };
        let page = browser.call("Target.createTarget", &json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": page["targetId"], "flatten": true });
        browser.session =
            Some(browser.call("Target.attachToTarget", &attach)["sessionId"].as_str().unwrap().into());
        for domain in ["Page", "Runtime", "Network", "Log"] {
            browser.call(&format!("{domain}.enable"), &json!({}));
        }
        browser
    }

    /// Makes a call and returns its result.
    #[track_caller]
    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Value {
        self.next += 1;
        let mut message = json!({ "id": self.next, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        self.commands.write_all(format!("{message}\0").as_bytes()).unwrap();
        let since = Instant::now();
        loop {
            let left = LIMIT.saturating_sub(since.elapsed());
            let answer = self.messages.recv_timeout(left).unwrap_or_else(|_| panic!("no answer to {method}"));
            if answer["id"] == self.next {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].clone();
            }
            self.note(&answer);
        }
    }

    fn note(&mut self, event: &Value) {
        let params = &event["params"];
        match event["method"].as_str() {
            Some("Network.requestWillBeSent") => {
                self.requests.push(params["request"]["url"].as_str().unwrap_or_default().into());
            }
            Some("Runtime.exceptionThrown") => self.faults.push(params["exceptionDetails"].to_string()),
            Some("Log.entryAdded")
                if params["entry"]["source"] != "network" && params["entry"]["level"] == "error" =>
            {
                self.faults.push(params["entry"]["text"].to_string());
            }
            _ => {}
        }
    }

    /// Sets the size of the window, and whether its colours are dark.
    pub(crate) fn resize(&mut self, width: u32, height: u32, dark: bool) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", &size);
        let colours =
            json!([{ "name": "prefers-color-scheme", "value": if dark { "dark" } else { "light" } }]);
        self.call("Emulation.setEmulatedMedia", &json!({ "features": colours }));
    }

    /// Opens an address and waits for the page.
    #[track_caller]
    pub(crate) fn open(&mut self, address: &str) {
        let opened = self.call("Page.navigate", &json!({ "url": address }));
        assert!(opened["errorText"].is_null(), "{address}: {}", opened["errorText"]);
        self.wait(&format!("location.href === {} && document.readyState === 'complete'", json!(address)));
    }

    /// Evaluates an expression.
    #[track_caller]
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let wanted = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let found = self.call("Runtime.evaluate", &wanted);
        assert!(found["exceptionDetails"].is_null(), "{expression}: {}", found["exceptionDetails"]);
        found["result"]["value"].clone()
    }

    /// Waits until an expression is true. While a page is being replaced, no expression is.
    #[track_caller]
    pub(crate) fn wait(&mut self, expression: &str) {
        let since = Instant::now();
        let wanted = json!({ "expression": format!("Boolean({expression})"), "returnByValue": true });
        while self.call("Runtime.evaluate", &wanted)["result"]["value"] != true {
            if since.elapsed() > LIMIT {
                let shown = self.value("document.body.innerText");
                panic!("waited in vain for {expression} on\n{}", shown.as_str().unwrap_or_default());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Saves a screenshot to the directory in `KELVIN_PICTURES`, if it is set, for review by people.
    pub(crate) fn picture(&mut self, name: &str, whole: bool) {
        let Some(directory) = std::env::var_os("KELVIN_PICTURES") else { return };
        let taken = self.call("Page.captureScreenshot", &json!({ "captureBeyondViewport": whole }));
        let script = format!("{}/{name}.png.base64", Path::new(&directory).display());
        std::fs::write(script, taken["data"].as_str().unwrap()).unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}
