// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"
)

// component is a component of a bill of materials, as CycloneDX has it.
type component struct {
	Type       string          `json:"type"`
	Ref        string          `json:"bom-ref"`
	Name       string          `json:"name"`
	Version    string          `json:"version"`
	Hashes     []hash          `json:"hashes,omitempty"` // of the file that it is
	Licenses   []licenceChoice `json:"licenses"`
	PURL       string          `json:"purl,omitempty"`
	Properties []property      `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// sumProperty is the property with a module's sum in go.sum and in the executable. It is a
// digest of the module's files, and not of its archive.
const sumProperty = "go.sum"

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

// billOfMaterials lists the modules of an executable in CycloneDX 1.5, and the digest of the
// executable itself.
func billOfMaterials(r revision, platform string, exe []byte, linked []*linkedModule) ([]byte, error) {
	components := []component{}
	for _, m := range linked {
		c := newComponent("library", m.path, m.version, m.identifiers...)
		if m.sum != "" {
			c.Properties = []property{{sumProperty, m.sum}}
		}
		components = append(components, c)
	}
	self := newComponent("application", module, r.version, "Apache-2.0")
	self.Hashes = []hash{{"SHA-256", fmt.Sprintf("%x", sha256.Sum256(exe))}}
	b, err := json.MarshalIndent(map[string]any{
		"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
		"metadata": map[string]any{
			"timestamp":  r.time.Format(time.RFC3339),
			"component":  self,
			"properties": []property{{"platform", platform}, {"commit", r.commit}},
		},
		"components": components,
	}, "", " ")
	return append(b, '\n'), err
}
