// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/unwindd/unwindd/internal/ondemand"
	"github.com/unwindd/unwindd/sdk"
)

// notStarted begins the reasons of starts that no process came of.
const notStarted = "could not be started: "

// handshakeLine describes the first line that a plugin writes to standard output.
var handshakeLine = fmt.Sprintf("`1|%d|unix|PATH|grpc`, the line with its address", sdk.ProtocolVersion)

// handshakeProblems turn the errors of go-plugin about the line of a plugin into sentences about the
// line: the library's own advice is for programs that use the library on both sides.
var handshakeProblems = []struct {
	matches func() *regexp.Regexp
	says    string // with what the parentheses matched
}{
	{ondemand.Regexp(`^Unrecognized remote plugin message: (?:\n|$)`), "ended, or closed its standard output, before it wrote %[2]s"},
	{ondemand.Regexp(`^Unrecognized remote plugin message: (.*)`), "wrote %[1]q to standard output, expected %[2]s"},
	{ondemand.Regexp(`^error parsing core protocol version: .*parsing "(.*)":`), "wrote a line that begins with %[1]q to standard output, expected %[2]s"},
	{ondemand.Regexp(`^incompatible core API version with plugin\. Plugin version: (.*), Core`), "wrote a line that begins with %[1]s to standard output, expected %[2]s"},
	{ondemand.Regexp(`^unsupported plugin protocol "(.*)"\.`), "wrote a line that ends with %[1]q to standard output, expected %[2]s"},
	{ondemand.Regexp(`^unknown address type: (.*)`), "listens on network %[1]q, expected unix, as in %[2]s"},
	{ondemand.Regexp(`^Error parsing protocol version "(.*)":`), "wrote a line with the protocol version %[1]q to standard output, expected %[2]s"},
}

// handshakeProblem is the reason that a plugin's line was refused, from go-plugin's message.
func handshakeProblem(message string) string {
	for _, p := range handshakeProblems {
		if found := p.matches().FindStringSubmatch(message); found != nil {
			line := ""
			if len(found) > 1 {
				line = clip(found[1])
			}
			return fmt.Sprintf(p.says, line, handshakeLine)
		}
	}
	first, _, _ := strings.Cut(message, "\n")
	return clip(printable(first))
}
