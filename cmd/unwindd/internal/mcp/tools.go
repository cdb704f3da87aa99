// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"bytes"
	"compress/gzip"
	_ "embed" // of stack.schema.json.gz
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// stackSchema is docs/stack.schema.json, packed. TestPackedSchema packs it again with -update.
//
//go:embed stack.schema.json.gz
var stackSchema []byte

// Members of input schemas that several tools have.
const (
	pathMember   = `"path":{"type":"string","description":"The file, relative to a root or absolute beneath one."}`
	threadMember = `"thread":{"type":"string","description":"The id of a thread as stack has it, such as \"4711\" or \"goroutine 17\". Default: the thread that crashed."}`
	frameMember  = `"frame":{"type":"integer","minimum":0,"maximum":65536,"default":0,"description":"The index of a frame as stack has it; 0 is the innermost."}`
	frameMembers = pathMember + "," + threadMember + "," + frameMember
)

// numberMember is the member of an input schema for a number.
func numberMember(name string, usual, most int, description string) string {
	return fmt.Sprintf(`%q:{"type":"integer","minimum":1,"maximum":%d,"default":%d,"description":%q}`, name, most, usual, description)
}

// inputOf is an input schema: required members, then all members.
func inputOf(required, members string) string {
	return `{"type":"object","additionalProperties":false,"required":[` + required + `],"properties":{` + members + `}}`
}

// Members of output schemas that several tools have.
const framedMembers = `"thread":{"type":"string"},"frame":{"type":"integer"},"function":{"type":"string"},"file":{"type":"string"},"line":{"type":"integer"}`

// framedSchema is the output schema of a tool whose answer is about a frame.
func framedSchema(required, members string) string {
	return `{"type":"object","required":["thread","frame",` + required + `],"properties":{` + framedMembers + "," + members + `}}`
}

// limitMembers bound the printing of variables.
var limitMembers = numberMember("depth", usualDepth, mostDepth, "Levels of values within one another: members, elements, what pointers point to.") + "," +
	numberMember("elements", usualElements, mostElements, "Elements of an array or a container, and characters of a string.")

// variableSchema is the schema of a variable in short; that of stack has all members.
const variableSchema = `{"type":"object","required":["name","status"],"properties":{"name":{"type":"string"},"kind":{"type":"string"},"type":{"type":"string"},` +
	`"value":{"type":"string"},"status":{"enum":["ok","optimized-out","partial","error"]},"problem":{"type":"string"},"address":{"type":"string"},` +
	`"children":{"type":"array","items":{"type":"object"}},"more":{"type":"integer","description":"Children that the limits left out."}}}`

// tools are the tools of a server.
var tools = sync.OnceValue(func() []tool {
	return []tool{
		{
			"stack", "Stacks of a crash",
			"What happened in a core, a minidump or a snapshot: the fact (the access, the call or the lock that failed, in one line), then the stacks of its threads, the crashed one first, innermost frame first, with functions, files and lines. Begin with it.",
			inputOf(`"path"`, pathMember+`,"thread":{"type":"string","description":"Only the thread of this id. Default: all, the crashed ones first."},`+
				numberMember("threads", usualThreads, mostThreads, "Threads at most; the answer counts the others.")+","+
				numberMember("frames", usualFrames, mostFrames, "Innermost frames of each stack.")+
				`,"goroutines":{"type":"boolean","default":false,"description":"The goroutines, tasks and virtual threads of language runtimes too."}`),
			stackOutput(), stack,
		},
		{
			"variables", "Variables of a frame",
			"The parameters and local variables of one frame, with types and values.",
			inputOf(`"path"`, frameMembers+","+limitMembers),
			framedSchema(`"variables"`, `"variables":{"type":"array","items":`+variableSchema+`},"left_out":{"type":"integer","description":"Variables that are not in the list."}`), variables,
		},
		{
			"eval", "A variable, or a part of one",
			"The value of a variable of a frame, a global, or a part of one: a->b.c, list[3], *p. It reads; it calls no function.",
			inputOf(`"path","expression"`, frameMembers+`,"expression":{"type":"string","maxLength":4096,"description":"Such as batch[1]->headers.name"},`+limitMembers),
			framedSchema(`"variable"`, `"variable":`+variableSchema), eval,
		},
		{
			"code", "Instructions of a frame",
			"The instructions around the program counter of a frame, and its registers.",
			inputOf(`"path"`, frameMembers+","+numberMember("lines", usualCode, mostCode, "Instructions.")),
			framedSchema(`"instructions","registers"`, `"instructions":{"type":"array","items":{"type":"object","required":["pc","bytes","text","current"],"properties":{"pc":{"type":"string"},"bytes":{"type":"string"},"text":{"type":"string"},"current":{"type":"boolean"}}}},"problem":{"type":"string"},"registers":{"type":"object"}`), code,
		},
		{
			"source", "Lines of source",
			"The lines of source around the line of a frame (path, thread, frame), or around a line of a file (file, line). Only files beneath the roots are read.",
			inputOf(``, frameMembers+`,"file":{"type":"string","description":"Instead of path: a source file, as a frame names it."},"line":{"type":"integer","minimum":1,"description":"With file: the line."},`+
				numberMember("lines", usualLines, mostLines, "Lines around it.")),
			`{"type":"object","required":["file","found","line","first","lines"],"properties":{` + framedMembers +
				`,"found":{"type":"string","description":"The path that was read."},"first":{"type":"integer","description":"The number of the first line."},"lines":{"type":"array","items":{"type":"string"}},"warning":{"type":"string"}}}`, source,
		},
		{
			"profile_top", "Hottest functions of a profile",
			"The functions in which most time or events of a recording of perf went: self is without the functions that they call, total with them.",
			inputOf(`"path"`, pathMember+`,"event":{"type":"string","description":"Only this event. Default: each."},`+numberMember("lines", usualTop, mostTop, "Functions.")),
			`{"type":"object","required":["events","problems"],"properties":{"events":{"type":"array","items":{"type":"object","required":["event","unit","samples","total","functions"],"properties":{"event":{"type":"string"},"unit":{"type":"string"},"samples":{"type":"integer"},"total":{"type":"integer"},"functions":{"type":"array","items":{"type":"object","required":["function","self","total"],"properties":{"function":{"type":"string"},"file":{"type":"string"},"line":{"type":"integer"},"module":{"type":"string"},"self":{"type":"integer"},"total":{"type":"integer"},"guessed":{"type":"integer"},"device":{"type":"boolean"}}}},"left_out":{"type":"integer"},"left_out_self":{"type":"integer"}}}},"problems":{"type":"array","items":{"type":"string"}}}}`, profileTop,
		},
	}
})

// stackOutput is the schema of the JSON of stacks, with two counts more.
func stackOutput() string {
	r, err := gzip.NewReader(bytes.NewReader(stackSchema))
	if err != nil {
		panic(err) // it is constant
	}
	all, err := io.ReadAll(r)
	if err != nil {
		panic(err) // likewise
	}
	var schema object
	if err := json.Unmarshal(all, &schema); err != nil {
		panic(err) // likewise
	}
	members, _ := schema["properties"].(object)
	for name, what := range map[string]string{"threads_left_out": "Threads that are not in the answer.", "modules_left_out": "Modules that no frame of the answer is in."} {
		members[name] = object{"type": "integer", "minimum": 1, "description": what}
	}
	b, err := json.Marshal(schema)
	if err != nil {
		panic(err) // likewise
	}
	return string(b)
}
