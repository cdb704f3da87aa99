// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestTheProtocolsDocumentHasItsLimits holds the table of docs/plugin-protocol.md against
// what is checked.
func TestTheProtocolsDocumentHasItsLimits(t *testing.T) {
	text, err := os.ReadFile("../docs/plugin-protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n## Limits\n")
	table, _, _ = strings.Cut(table, "\n## ")
	limits := []int{
		maxRequest, maxAnswer, maxDescription, maxEngineRequest, partSize, maxParts, maxEngineRequests, maxStrays, partRows, maxMessage,
		MaxRegisters, MaxRegisterBits, MaxRegisterData, MaxDescriptionList, MaxBatch, MaxLanes, MaxName, MaxText, MaxExpression, MaxFile,
	}
	rows := regexp.MustCompile(`(?m)^\| (.*) \| ([0-9,]+) \|$`).FindAllStringSubmatch(table, -1)
	if len(rows) != len(limits) {
		t.Fatalf("%d limits, expected %d", len(rows), len(limits))
	}
	for i, row := range rows {
		if n, err := strconv.Atoi(strings.ReplaceAll(row[2], ",", "")); err != nil || n != limits[i] {
			t.Errorf("%s: %s, expected %d", row[1], row[2], limits[i])
		}
	}
	for _, said := range []string{
		fmt.Sprintf("1|%d|unix|", ProtocolVersion), fmt.Sprintf("in the package's name is %d.", ProtocolVersion),
		fmt.Sprintf("unwindd.arch.v%d.Architecture", ProtocolVersion), EngineCertificate, PluginIdentity, SocketDirectory, Cookie, Debug, Reattach,
	} {
		if !strings.Contains(string(text), said) {
			t.Errorf("the document does not say %q", said)
		}
	}
}
