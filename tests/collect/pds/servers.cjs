// Starts a directory of identities in memory and a personal data server (PDS) on this machine's loopback, prints their
// addresses as one line of JSON, and ends when its standard input does.
//
//   node servers.cjs MODULES FOLDER      (MODULES: the folder with node_modules)
const crypto = require('node:crypto')
const fs = require('node:fs')
const net = require('node:net')
const path = require('node:path')
const { createRequire } = require('node:module')

const [modules, folder] = process.argv.slice(2)
const load = createRequire(path.join(path.resolve(modules), 'package.json'))
const { PDS, envToCfg, envToSecrets } = load('@atproto/pds')
const plc = load('@did-plc/server')

// Both servers listen on every address unless told otherwise: these are for this machine alone.
const listen = net.Server.prototype.listen
net.Server.prototype.listen = function (port, ...rest) {
  return typeof port === 'number' ? listen.call(this, port, '127.0.0.1', ...rest) : listen.call(this, port, ...rest)
}

const freePort = () =>
  new Promise((done) => {
    const server = net.createServer().listen(0, () => {
      const { port } = server.address()
      server.close(() => done(port))
    })
  })

async function main() {
  const directoryPort = await freePort()
  const port = await freePort()
  await plc.PlcServer.create({ db: plc.Database.mock(), port: directoryPort }).start()
  const key = crypto.createECDH('secp256k1')
  key.generateKeys()
  fs.mkdirSync(path.join(folder, 'blobs'), { recursive: true })
  const settings = {
    port,
    hostname: 'localhost',
    devMode: true,
    dataDirectory: folder,
    blobstoreDiskLocation: path.join(folder, 'blobs'),
    didPlcUrl: `http://127.0.0.1:${directoryPort}`,
    serviceHandleDomains: ['.test'],
    inviteRequired: false,
    disableSsrfProtection: true, // the directory is on this machine
    crawlers: [],
    rateLimitsEnabled: false,
    jwtSecret: 'only-for-tests',
    adminPassword: 'only-for-tests',
    plcRotationKeyK256PrivateKeyHex: key.getPrivateKey('hex').padStart(64, '0'),
  }
  const pds = await PDS.create(envToCfg(settings), envToSecrets(settings))
  await pds.start()
  console.log(JSON.stringify({ pds: `http://127.0.0.1:${port}` }))
  process.stdin.resume()
  process.stdin.on('end', () => process.exit(0))
}

main().catch((error) => {
  console.error(error)
  process.exit(1)
})
