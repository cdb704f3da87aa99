// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"time"

	"github.com/unwindd/unwindd/sdk"
)

// pluginHost is the name that go-plugin's certificates have.
const pluginHost = "localhost"

// identity is a certificate that one start of a plugin uses, with its key.
type identity struct {
	pair             tls.Certificate
	certificate, key []byte // PEM
}

// newIdentity makes a certificate of P-256. Certificates of go-plugin's AutoMTLS use
// P-521, which costs both sides tens of milliseconds of a start.
func newIdentity() (*identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: pluginHost},
		DNSNames:              []string{pluginHost},
		SerialNumber:          serial,
		NotBefore:             time.Now().Add(-time.Hour), // clocks are set back
		NotAfter:              time.Now().AddDate(30, 0, 0),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	id := &identity{
		certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		key:         pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}),
	}
	id.pair, err = tls.X509KeyPair(id.certificate, id.key)
	return id, err
}

// newTLS returns the engine's side of a connection, and the environment that tells the
// process about it: the engine's certificate, as go-plugin passes it, and a certificate
// for the process. A plugin that does not know the second makes one itself, and go-plugin
// then uses that.
func newTLS() (*tls.Config, []string, error) {
	own, err := newIdentity()
	if err != nil {
		return nil, nil, err
	}
	process, err := newIdentity()
	if err != nil {
		return nil, nil, err
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(process.certificate)
	config := &tls.Config{
		Certificates: []tls.Certificate{own.pair},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		RootCAs:      trusted,
		ClientCAs:    trusted,
		MinVersion:   tls.VersionTLS13,
		ServerName:   pluginHost,
	}
	return config, []string{
		sdk.EngineCertificate + "=" + string(own.certificate),
		sdk.PluginIdentity + "=" + string(process.certificate) + string(process.key),
	}, nil
}
