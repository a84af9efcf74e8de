/*
 * Command lines, environments and MCP sessions of public reports about command lines. A new report is one line more. The columns are separated by |.
 */

/**
 * What it is | the report | settings, separated by ; | the command | exit code | a part of stderr.
 *
 * A setting is a variable, `stdin`, a `file` in {home} with its text, a `link` in {home} with its target, a `kept` link, to a file with the credential,
 * or what the proxy was `asked` for. {service} answers, {tls} has an unknown certificate, {proxy} refuses. SVC_BASE_URL is {service}.
 */
export const commands = `
a base URL that ends in /v1 | spencerwi/cliflux#12 | stdin={key} | login --with-token --base-url {service}/v1 | 0 | Signed in to {service} with
a base URL that ends in /v1/ | NVIDIA/NemoClaw#1575 | stdin={key} | login --with-token --base-url {service}/v1/ | 0 | Signed in to {service} with
slashes at the end | apache/openwhisk-cli#481 | stdin={key} | login --with-token --base-url {service}// | 0 | Signed in to {service} with
a line end after the key | balena-io/balena-cli#1800 | stdin={key}{crlf} | login --with-token | 0 | Signed in
a character that is not seen | hetznercloud/cli#102 | SVC_API_KEY={key}{invisible}x | whoami | 2 | (U+200B)
a key in quotes | e2b-dev/E2B#342 | SVC_API_KEY="{key}" | whoami | 2 | in quotes
a header instead of its key | stackitcloud/stackit-api-manager-cli#16 | SVC_API_KEY=Bearer {key} | whoami | 2 | begins with Bearer
a line of .env | rainforestapp/rainforest-cli#229 | stdin=SVC_API_KEY={key} | login --with-token | 2 | begins with the name of a variable
a file in UTF-16 | cli/cli#4349 | stdin={utf16} | login --with-token | 2 | UTF-16
a variable that no one replaced | anthropics/claude-code#80197 | SVC_API_KEY={braced} | whoami | 2 | was not replaced
a variable in another notation | microsoft/apm#1963 | SVC_API_KEY=$SVC_API_KEY | whoami | 2 | was not replaced
an empty config.json beside variables | cli/cli#5949 | SVC_API_KEY={key}; file svc/config.json= | whoami | 0 |
a folder as config.json beside variables | cli/cli#7360 | SVC_API_KEY={key}; file svc/config.json/x= | whoami | 0 |
an empty config.json | cli/cli#5949 | file svc/config.json= | whoami | 1 | Delete it and sign in again: svc login
a link as config.json | git-ai-project/git-ai#403 | file c.json={}; link svc/config.json=../c.json; stdin={key}; kept=svc/config.json | login --with-token | 0 |
a link to no file yet | asheshgoplani/agent-deck#1315 | link svc/config.json=../c.json; stdin={key}; kept=svc/config.json | login --with-token | 0 |
a folder where none can be created | nodejs/node#27198 | XDG_CONFIG_HOME=/proc/none; stdin={key} | login --with-token | 1 | Could not write /proc/none/
a cache where none can be created | oven-sh/bun#40600 | XDG_CACHE_HOME=/proc; NODE_COMPILE_CACHE= | --version | 0 |
a proxy | vercel/vercel#9880 | SVC_API_KEY={key}; HTTPS_PROXY=http://{proxy}; asked=api.test:443 | whoami --base-url https://api.test | 5 | HTTPS_PROXY is used
a proxy in lower case | jackwener/OpenCLI#510 | SVC_API_KEY={key}; https_proxy=http://{proxy}/; asked=api.test:443 | whoami --base-url https://api.test | 5 | HTTPS_PROXY is used
a proxy without a scheme | prisma/orm#20302 | SVC_API_KEY={key}; HTTPS_PROXY={proxy}; asked=api.test:443 | whoami --base-url https://api.test | 5 | HTTPS_PROXY is used
a proxy of SOCKS | Shopify/ucp-cli#37 | SVC_API_KEY={key}; HTTPS_PROXY=socks5://{proxy}; asked= | whoami --base-url https://127.0.0.2:9999 | 5 | HTTPS_PROXY is not used
a host of NO_PROXY | supabase/cli#1451 | SVC_API_KEY={key}; HTTPS_PROXY={proxy}; NO_PROXY=127.0.0.2; asked= | whoami --base-url https://127.0.0.2:9999 | 5 | ECONNREFUSED
a host of no_proxy | anthropics/claude-code#1868 | SVC_API_KEY={key}; https_proxy={proxy}; no_proxy=127.0.0.2; asked= | whoami --base-url https://127.0.0.2:9999 | 5 | ECONNREFUSED
a service on this machine | KarpelesLab/teamclaude#75 | SVC_API_KEY={key}; HTTPS_PROXY={proxy}; HTTP_PROXY={proxy}; asked= | whoami | 0 |
no service on this machine | KarpelesLab/teamclaude#75 | SVC_API_KEY={key}; HTTPS_PROXY={proxy}; asked= | whoami --base-url http://localhost:9999 | 5 | Check the base URL and your network
the CA of a company | Dashlane/dashlane-cli#46 | SVC_API_KEY={key} | whoami --base-url {tls} | 5 | NODE_EXTRA_CA_CERTS=<file.pem>
a CA in SSL_CERT_FILE | CleverCloud/clever-tools#1099 | SVC_API_KEY={key}; SSL_CERT_FILE=/ca.pem | whoami --base-url {tls} | 5 | NODE_EXTRA_CA_CERTS=/ca.pem
a token that ends before the wait | actions/toolkit#2048 | SVC_API_KEY={jwt} | {wait} | 3 | before the timeout of 90s
the token of a job, renewed | chainloop-dev/chainloop#2892 | SVC_API_KEY={ending}; ACTIONS_ID_TOKEN_REQUEST_URL={service}/token?v=2; ACTIONS_ID_TOKEN_REQUEST_TOKEN=t | {wait} | 0 |
the token of a job, and no next one | google-github-actions/auth#485 | SVC_API_KEY={ending}; ACTIONS_ID_TOKEN_REQUEST_URL={service}/no; ACTIONS_ID_TOKEN_REQUEST_TOKEN=t | {wait} | 3 | Could not renew
`;

/**
 * What it is | the report | the lines, each ended by ¶ | the answers in any order, separated by ; | settings.
 *
 * An answer is the id, and the code of the error, a part of a tool's error, or `result`. {ping 1} is a request with the id 1.
 */
export const sessions = `
a number | modelcontextprotocol/typescript-sdk#2000 | 42¶ | null -32600
a request without jsonrpc | modelcontextprotocol/typescript-sdk#2247 | {"id":99,"method":"ping"}¶ | 99 -32600
a line that is not JSON | BaseIntelligence/bounty-challenge#51392 | {"jsonrpc¶ | null -32700
a bad line before a request | chrisdoc/hevy-mcp#796 | not json¶{ping 5}¶ | null -32700; 5 result
blank lines | steipete/oracle#238 | ¶  ¶{ping 1}¶ | 1 result
a batch | accensa/x402-facilitator-stellar#199 | [{ping 6},{ping 7}]¶ | 6 result; 7 result
an empty batch | googleapis/mcp-toolbox#3332 | []¶ | null -32600
an id that is null | damionrashford/RivalSearchMCP#5 | {ping null}¶ | null -32600
params that are a list | modelcontextprotocol/typescript-sdk#563 | {"jsonrpc":"2.0","id":8,"method":"ping","params":[1]}¶ | 8 -32600
an unknown method | modelcontextprotocol/typescript-sdk#2000 | {"jsonrpc":"2.0","id":9,"method":"no/method"}¶ | 9 -32601
an unknown notification | modelcontextprotocol/typescript-sdk#2000 | {"jsonrpc":"2.0","method":"no/method"}¶{ping 1}¶ | 1 result
a last line without an end | quozl/netrek-server#9 | {ping 1} | 1 result
no credential | tavily-ai/tavily-mcp#161 | {call}¶ | 3 You are not signed in to {service}. Run svc login, or set SVC_API_KEY. Then restart this MCP server.
a variable that no one replaced | anthropics/claude-code#40372 | {call}¶ | 3 was not replaced by its value | SVC_API_KEY=$KEY
`;

/** Keywords of schemas for which the API of a model refused a request | the report. */
export const refusedKeywords = `
format | google-gemini/gemini-cli#2237
propertyNames | tailcallhq/forgecode#3426
$schema | promptfoo/promptfoo#6902
`;
