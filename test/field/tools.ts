/* Requests as tools and shells of others send them, the pages that say so, and what the service answers. */

interface ToolRequest {
  method: string;
  /** Below `/v1`. */
  path: string;
  headers?: Record<string, string>;
  body?: Uint8Array;
}

interface Expected {
  status: number;
  code?: string;
  message?: string;
}

const powerShell = "https://learn.microsoft.com/powershell/module/microsoft.powershell.core/about";
const requests = "https://requests.readthedocs.io/en/latest/user/quickstart";

const sources = {
  axios: "https://axios-http.com/docs/req_config",
  monitor: "https://github.com/passbolt/passbolt_api/issues/507",
  campaign: "https://support.google.com/analytics/answer/10917952",
  cmd: "https://github.com/curl/curl/commit/a61eac6248ea29e499f7e9dbd1c27661ef58b754",
  curl: "https://curl.se/docs/manpage.html",
  dotnet: "https://learn.microsoft.com/dotnet/api/system.net.http.stringcontent",
  encoding: `${powerShell}/about_character_encoding`,
  fetch: "https://fetch.spec.whatwg.org/#bodyinit-unions",
  fluentBit: "https://docs.fluentbit.io/manual/pipeline/outputs/http",
  httpie: "https://httpie.io/docs/cli/json",
  jquery: "https://api.jquery.com/jQuery.ajax/",
  quotes: "https://github.com/Azure/azure-cli/blob/dev/doc/quoting-issues-with-powershell.md",
  requestsForm: `${requests}/#more-complicated-post-requests`,
  requestsHeaders: `${requests}/#custom-headers`,
};

/** A POST of a new API key. */
const post = (type: string, body: string | Uint8Array, headers: Record<string, string> = {}): ToolRequest => ({
  method: "POST",
  path: "/api-keys",
  headers: { "content-type": type, ...headers },
  body: new Uint8Array(Buffer.from(body)),
});
const request = (method: string, path: string): ToolRequest => ({ method, path });

const [json, form, body] = ["application/json", "application/x-www-form-urlencoded", '{"name":"ci"}'];
const utf16 = Buffer.from(`\ufeff${body}`, "utf16le");
const gzip = { "content-encoding": "gzip" };

const created: Expected = { status: 201 };
const unsupported = (message: string): Expected => ({ status: 415, code: "unsupported_media_type", message });
const wrongType = unsupported("Send the body as 'Content-Type: application/json'.");
const compressed = unsupported("Send the body uncompressed, without 'Content-Encoding'.");
const unknown = (name: string): Expected => ({
  status: 400,
  code: "validation_error",
  message: `The input is not valid: ${name} is not a known query parameter.`,
});
const notJson = (hint: string): Expected => ({
  status: 400,
  code: "invalid_json",
  message: `The body is not valid JSON. ${hint}`,
});
const isForm = notJson('It is a form: send an object, such as {"name":"ci"}.');
const hasMark = notJson("It begins with a byte order mark: save it as UTF-8 without one.");
const isUtf16 = notJson("It is not UTF-8, but probably UTF-16: save it as UTF-8.");
const isFileName = notJson("It is the name of a file, whose content the client did not send.");
const noQuotes = notJson("It lacks double quotes, which some shells remove: send it from a file.");

export const toolRequests: [tool: string, source: string, ToolRequest, Expected][] = [
  ["HTTPie", sources.httpie, post(json, body, { accept: "application/json, */*;q=0.5" }), created],
  ["axios", sources.axios, post(json, body, { accept: "application/json, text/plain, */*" }), created],
  [".NET StringContent", sources.dotnet, post("application/json; charset=utf-8", body), created],
  ["curl -d without a header", sources.curl, post(form, body), wrongType],
  ["curl -F", sources.curl, post("multipart/form-data; boundary=x", "--x--"), wrongType],
  ["fetch with a string, without a header", sources.fetch, post("text/plain;charset=UTF-8", body), wrongType],
  ["requests with data=", sources.requestsForm, post(form, "name=ci"), wrongType],
  ["requests with data= and a header", sources.requestsHeaders, post(json, "name=ci"), isForm],
  ["Fluent Bit with compress gzip", sources.fluentBit, post(json, Uint8Array.of(31, 139, 8, 0), gzip), compressed],
  ["PowerShell 5, -Encoding utf8", sources.encoding, post(json, `\ufeff${body}`), hasMark],
  ["PowerShell 5, > to a file", sources.encoding, post(json, utf16), isUtf16],
  ["PowerShell 5, an argument with quotes", sources.quotes, post(json, "{name:ci}"), noQuotes],
  ["cmd.exe, which keeps single quotes", sources.cmd, post(json, "'{name:ci}'"), noQuotes],
  ["curl --data-raw with a file", sources.curl, post(json, "@body.json"), isFileName],
  ["jQuery with cache: false", sources.jquery, request("GET", "/api-keys?_=1795233869"), unknown("_")],
  ["a link of a campaign", sources.campaign, request("GET", "/projects?utm_source=mail"), unknown("utm_source")],
  ["a monitor that sends HEAD", sources.monitor, request("HEAD", "/projects"), { status: 405 }],
];
