// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"time"
)

// component is a component of a bill of materials, as CycloneDX has it.
type component struct {
	Type     string          `json:"type"`
	Ref      string          `json:"bom-ref"`
	Name     string          `json:"name"`
	Version  string          `json:"version"`
	PURL     string          `json:"purl,omitempty"`
	Licenses []licenceChoice `json:"licenses"`
}

type licenceChoice struct {
	License struct {
		ID string `json:"id"`
	} `json:"license"`
}

func newComponent(kind, path, version string, identifiers ...string) component {
	c := component{Type: kind, Name: path, Version: version, PURL: "pkg:golang/" + path + "@" + version}
	c.Ref = c.PURL
	for _, id := range identifiers {
		var l licenceChoice
		l.License.ID = id
		c.Licenses = append(c.Licenses, l)
	}
	return c
}

// billOfMaterials lists the modules of an executable in CycloneDX 1.5.
func billOfMaterials(r revision, platform string, linked []*linkedModule) ([]byte, error) {
	components := []component{}
	for _, m := range linked {
		components = append(components, newComponent("library", m.path, m.version, m.identifiers...))
	}
	self := newComponent("application", module, r.version, "Apache-2.0")
	b, err := json.MarshalIndent(map[string]any{
		"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
		"metadata": map[string]any{
			"timestamp":  r.time.Format(time.RFC3339),
			"component":  self,
			"properties": []map[string]string{{"name": "platform", "value": platform}, {"name": "commit", "value": r.commit}},
		},
		"components": components,
	}, "", " ")
	return append(b, '\n'), err
}
