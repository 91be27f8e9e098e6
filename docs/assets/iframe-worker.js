// SPDX-License-Identifier: BSD-3-Clause
// Browsers start no worker from a file on a disk, and the search is one: there, an empty frame runs it instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    #ready;

    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = inside.document.createElement("script");
      script.src = url;
      this.#ready = new Promise((resolve) => (script.onload = () => resolve(inside)));
      inside.document.body.append(script);
    }

    postMessage(data) {
      this.#ready.then((inside) => inside.dispatchEvent(new inside.MessageEvent("message", { data })));
    }

    terminate() {}
  };
}
