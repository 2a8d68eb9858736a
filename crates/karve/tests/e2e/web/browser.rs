//! A real Chromium, driven through two pipes: no network, no library.

use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// No wait takes longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A browser with one page.
#[derive(Debug)]
pub(crate) struct Browser {
    child: Child,
    to: File,
    from: BufReader<File>,
    session: Option<String>,
    calls: u64,
    /// What the browser told unasked.
    told: Vec<Value>,
    _dir: TempDir,
}

impl Browser {
    /// Starts it; none where it is not installed. `test.sh` installs it where it may.
    pub(crate) fn start() -> Option<Self> {
        let found = ["/usr/bin/chromium", "/usr/bin/google-chrome"];
        let program = found.into_iter().find(|path| Path::new(path).exists());
        let Some(program) = program else {
            println!("skipped: there is no Chromium");
            return None;
        };
        let dir = tempfile::tempdir().unwrap();
        let pipes = ["to", "from"].map(|name| dir.path().join(name));
        let made = Command::new("mkfifo").args(&pipes).status().unwrap();
        assert!(made.success());
        let line = "exec \"$0\" \"$@\" 3<\"$KARVE_TO\" 4>\"$KARVE_FROM\"";
        let data = format!("--user-data-dir={}", dir.path().join("data").display());
        let mut command = Command::new("sh");
        command.args(["-c", line, program, "--headless=new", "--no-sandbox", "--disable-gpu"]);
        command.args(["--remote-debugging-pipe", "--no-first-run", &data, "about:blank"]);
        command.env("KARVE_TO", &pipes[0]).env("KARVE_FROM", &pipes[1]);
        command.env("HOME", dir.path()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap();
        // Both ends wait for each other, in this order.
        let to = OpenOptions::new().write(true).open(&pipes[0]).unwrap();
        let from = BufReader::new(File::open(&pipes[1]).unwrap());
        let mut browser =
            Self { child, to, from, session: None, calls: 0, told: Vec::new(), _dir: dir };
        let targets = browser.call("Target.getTargets", &json!({}));
        let pages = targets["targetInfos"].as_array().unwrap();
        let page = pages.iter().find(|target| target["type"] == "page").unwrap();
        let wish = json!({"targetId": page["targetId"], "flatten": true});
        let attached = browser.call("Target.attachToTarget", &wish);
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Network", "Log"] {
            browser.call(&format!("{domain}.enable"), &json!({}));
        }
        Some(browser)
    }

    /// Asks the browser for something.
    #[track_caller]
    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Value {
        let mut answer = self.answer(method, params);
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].take()
    }

    /// The answer of the browser, which may be an error.
    fn answer(&mut self, method: &str, params: &Value) -> Value {
        self.calls += 1;
        let mut message = json!({"id": self.calls, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = serde_json::to_vec(&message).unwrap();
        bytes.push(0);
        self.to.write_all(&bytes).unwrap();
        loop {
            let mut bytes = Vec::new();
            let n = self.from.read_until(0, &mut bytes).unwrap();
            assert!(n > 0, "the browser ended");
            bytes.pop();
            let answer: Value = serde_json::from_slice(&bytes).unwrap();
            if answer["id"] == self.calls {
                return answer;
            }
            self.told.push(answer);
        }
    }

    /// What an expression has as its value in the page.
    #[track_caller]
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let answer = self.call("Runtime.evaluate", &evaluation(expression));
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Waits until an expression is true, also across pages: while one takes the place of another,
    /// the browser answers with an error.
    #[track_caller]
    pub(crate) fn waits_for(&mut self, expression: &str) {
        let start = Instant::now();
        loop {
            let answer = self.answer("Runtime.evaluate", &evaluation(expression));
            let result = &answer["result"];
            assert!(result["exceptionDetails"].is_null(), "{expression}: {answer}");
            if result["result"]["value"] == json!(true) {
                return;
            }
            if start.elapsed() > PATIENCE {
                let page = self.answer("Runtime.evaluate", &evaluation("location.href"));
                assert!(page.is_null(), "never: {expression}\non {page}\n{:#?}", self.problems());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Opens a page, and waits until its script has run.
    #[track_caller]
    pub(crate) fn opens(&mut self, address: &str) {
        self.call("Page.navigate", &json!({"url": address}));
        self.waits_for("document.readyState === 'complete' && document.body !== null");
        self.waits_for("document.body?.dataset.ready === 'yes'");
    }

    /// Presses a key.
    pub(crate) fn presses(&mut self, key: &str) {
        let text = if key.len() == 1 { key } else { "" };
        let code = if key == "Enter" { 13 } else { 0 };
        for kind in ["keyDown", "keyUp"] {
            let wish =
                json!({"type": kind, "key": key, "text": text, "windowsVirtualKeyCode": code});
            self.call("Input.dispatchKeyEvent", &wish);
        }
    }

    /// The size of the window, and light or dark.
    pub(crate) fn looks(&mut self, (width, height): (u32, u32), scheme: &str) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1,
            "mobile": width < 500});
        self.call("Emulation.setDeviceMetricsOverride", &size);
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.call("Emulation.setEmulatedMedia", &media);
    }

    /// Requests that failed, exceptions, and what was logged as an error.
    pub(crate) fn problems(&self) -> Vec<String> {
        let told = self.told.iter().filter_map(|told| {
            let params = &told["params"];
            let is_problem = match told["method"].as_str().unwrap_or_default() {
                "Network.loadingFailed" => params["canceled"] != true,
                "Network.responseReceived" => params["response"]["status"].as_u64() > Some(399),
                "Runtime.exceptionThrown" => true,
                "Log.entryAdded" => params["entry"]["level"] == "error",
                "Runtime.consoleAPICalled" => params["type"] == "error",
                _ => false,
            };
            is_problem.then(|| told.to_string())
        });
        told.collect()
    }

    /// The addresses that the page asked for.
    pub(crate) fn requests(&self) -> Vec<String> {
        let sent = self.told.iter().filter(|t| t["method"] == "Network.requestWillBeSent");
        let of = |told: &Value| told["params"]["request"]["url"].as_str().map(str::to_owned);
        sent.filter_map(of).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What evaluates an expression in the page.
fn evaluation(expression: &str) -> Value {
    json!({"expression": expression, "returnByValue": true, "awaitPromise": true})
}
