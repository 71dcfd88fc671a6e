package redact

import "strings"

// arg is one argument of a command, and next what parts it from its flag, in a
// shell's line or in a list of strings.
const (
	arg  = `(?:"((?:[^"\\]|\\.)+)"|'([^']+)'|([^\s"'|;<>,\]\\][^\s"'|;<>\\]*))`
	next = `(?:[ \t]+|=|["'][, \t]+|["'],)`
	// word is a value that ends at a space or a quote.
	word = `["']?([^\s"'\\]+)`
	// cisco is the number that says how a value is encrypted.
	cisco = `(?:[05-9] )?`
)

// after is a pattern for the argument of one of the flags.
func after(flags string) string {
	return `[\s"'](?:` + strings.ReplaceAll(flags, " ", "|") + `)` + next + arg
}

// places are texts in which secrets stand, besides members.
var places = []rule{
	{kind: "header", words: "authorization cookie", inside: true, example: `Authorization: Bearer abc.def`,
		pattern: `(?i:authorization|cookie)(?:\\*["'])?[ \t]*(?:[:=]|=>|,)[ \t]*(?:\\*["'])?((?:="[^"\r\n]*"|=\\"[^"\r\n]*"|[^\r\n"'\\])+)`},
	{kind: "token", words: "bearer· basic· token· apikey· negotiate· api-token·", random: true, example: `used Bearer fake0bearer1token2of3nothing`,
		pattern: `\S+ +([A-Za-z0-9._~+/\-]{16,}=*)`},
	{kind: "token", words: "pveapitoken pbsapitoken pmgapitoken", inside: true, example: `PVEAPIToken=root@pam!mon=00000000-1111-2222-3333-444444444444`,
		pattern: `(?i:P..APIToken)[=: ]+([^\s"',;\\]+)`},
	{kind: "token", words: "!", inside: true, example: `token root@pam!mon=00000000-1111-2222-3333-444444444444 added`,
		pattern: `![\w.\-]+[=:]([0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12})`},
	{kind: "token", words: "pve: pbs: pmgs:", example: `ticket PVE:root@pam:65F0A1B2::ZmFrZSBzaWduYXR1cmUgb2Ygbm90aGluZw==`,
		pattern: `P\w+(?::|%3A)[^\s:%]+(?:@|%40)[^\s:%]+(?::|%3A)[0-9A-F]{8}(?::|%3A){2}([A-Za-z0-9+/=%]+)`},
	{kind: "token", words: "csrfpreventiontoken", inside: true, example: `CSRFPreventionToken 65F0A1B2:fakesignature0123456789`,
		pattern: `\w+\W{1,4}([0-9A-F]{8}:[A-Za-z0-9+/=]+)`},
	{kind: "hash", words: "$1$ $5$ $6$ $7$ $y$ $gy$ $8$ $9$ $14$ $2a$ $2b$ $2y$ $apr1$ $argon2i $argon2id $pbkdf2 $scrypt $sha1$ pbkdf2_sha256$ scram-sha-256$",
		inside: true, example: `root:$6$fakesalt$fakehashfakehashfakehash0123456789:19000:0:99999:7:::`,
		pattern: `[$A-Za-z][\w\-]*\$[\w./$=,+\-:]{8,}`},
	{kind: "hash", words: "{ssha} {ssha512} {sha} {crypt} {smd5} {md5}", inside: true, example: `userPassword: {SSHA}ZmFrZWhhc2hmYWtlaGFzaGZha2VoYXNo`,
		pattern: `\{\w+\}[A-Za-z0-9+/=$.]{8,}`},
	{kind: "hash", words: "*", inside: true, example: `*0123456789ABCDEF0123456789ABCDEF01234567`, pattern: `\*[0-9A-F]{40}\b`},
	{kind: "key", words: "private-lines:", example: "Private-Lines: 1\nZmFrZWtleWZha2VrZXlmYWtla2V5\n", pattern: `Private-Lines: \d+\s+((?:[A-Za-z0-9+/=]+\r?\n?)+)`},
	{kind: "member", words: "enable", example: `enable secret 5 $1$fake$notarealhash`,
		pattern: `(?i:enable (?:secret|password))(?: level \d+)? ` + cisco + `(\S+)`},
	{kind: "member", words: "username·", example: `username admin privilege 15 secret 0 fake-secret-1`,
		pattern: `(?i:username) \S+ (?:[\w \-]{1,80} )?(?i:password|secret) ` + cisco + `(\S+)`},
	{kind: "member", words: "password· secret· key· key-string· pre-shared-key· md5· authentication-key· community·", inside: true, example: `password 7 0822455D0A16FAKE`,
		pattern: `\S+ [05-9] (\S{4,})`},
	{kind: "member", words: "snmp-server·", example: `snmp-server community fake-ro RO`,
		pattern: `(?i:snmp-server (?:community|host \S+(?: traps| informs)?(?: version \w+)?)) ([^\s"]+)`},
	{kind: "member", words: "snmp·", example: `set snmp community fake-ro authorization read-only`,
		pattern: `snmp (?:v3 )?(?:trap-)?community ` + word},
	{kind: "member", words: "-server·key isakmp·key server-key·", inside: true, example: `tacacs-server key fake-tacacs-1`,
		pattern: `\S+ ?(?:key )?` + cisco + `(\S+)`},
	{kind: "member", words: "neighbor·", example: `neighbor 192.0.2.1 password fake-bgp-1`, pattern: `neighbor \S+ password ` + cisco + `(\S+)`},
	{kind: "member", words: "message-digest-key·", example: `ip ospf message-digest-key 1 md5 fake-ospf-1`, pattern: `\S+ \d+ md5 ` + cisco + `(\S+)`},
	{kind: "member", words: "authentication-key·", example: `ntp authentication-key 1 md5 fake-ntp-1`, pattern: `\S+ (?:\d+ md5 )?` + cisco + `(\S{4,})`},
	{kind: "member", words: "set·password set·passwd set·psksecret set·passphrase set·private-key set·secret", example: `set psksecret ENC FAKEfakeFAKEfake`,
		pattern: `set \S+ (?:ENC (\S+)|["']([^"'\r\n]+)|(\S*\d\S*))`},
	{kind: "member", words: "wpa-psk wpa_psk", example: "wpa-psk ascii 0 fake-wifi-pass", pattern: `\S+\s+(?:ascii\s+|hex\s+)?(?:\d\s+)?` + word},
	{kind: "member", words: "rocommunity rwcommunity rocommunity6 rwcommunity6 trapcommunity requirepass masterauth rootpw bindpw rootbindpw userpassword",
		example: `rocommunity fake-public 192.0.2.0/24`, pattern: `\w+[ \t]+` + word},
	{kind: "member", words: "com2sec com2sec6", example: `com2sec readonly 192.0.2.0/24 fake-comm`, pattern: `com2sec6?\s+\S+\s+\S+\s+` + word},
	{kind: "member", words: "trapsink trap2sink informsink", example: `trap2sink 192.0.2.9 fake-comm`, pattern: `\S+\s+\S+\s+` + word},
	{kind: "member", words: "authcommunity", example: `authCommunity log,execute fake-comm`, pattern: `\S+\s+[a-z,]+\s+` + word},
	{kind: "member", words: "createuser", example: `createUser fakeuser SHA "fake-auth-pass" AES "fake-priv-pass"`,
		pattern: `(?i:createuser)(?: -e \S+)? \S+ [\w\-]+ ([^\r\n]+)`},
	{kind: "member", words: "monitor·", example: `MONITOR ups@localhost 1 upsmon fake-ups-pass primary`, pattern: `(?i:monitor)\s+\S+@\S+\s+\d+\s+\S+\s+` + word},
	{kind: "member", words: "login·", example: `machine mail.example.org login me password fake-netrc-1`, pattern: `login\s+\S+\s+password\s+` + word},
	{kind: "member", words: "psk·", example: `203.0.113.7 : PSK "fake-ipsec-key"`, pattern: `(?i:psk)[ \t]+"([^"\r\n]+)"`},
	{kind: "member", words: "xauth· eap·", example: `user : EAP "fake-eap-pass"`, pattern: `\w+[ \t]+"([^"\r\n]+)"`},
	{kind: "member", words: "]:", inside: true, example: `[smtp.example.org]:587 me@example.org:fake-relay-1`, pattern: `\]:\d+\s+[^\s:]+:(\S+)`},
	{kind: "member", words: ":5432: :5433:", inside: true, example: `db.example.org:5432:app:me:fake-pgpass-1`, pattern: `:\d+:[^:\s]*:[^:\s]*:(\S+)`},
	{kind: "member", words: "identified·", example: `CREATE USER 'me'@'%' IDENTIFIED BY 'fake-sql-1'`,
		pattern: `(?i:identified (?:with \S+ )?(?:by|as)(?: password)?)\s*\\?['"]([^'"\r\n]+)`},
	{kind: "member", words: "password·' password('", example: `ALTER ROLE me WITH PASSWORD 'fake-sql-2'`, pattern: `\w+[ (]'([^'\r\n]+)'`},
	{kind: "member", words: "pass·", example: "PASS fake-ftp-1\r\n", pattern: `PASS ([^\s/]+)[ \t]*(?:\r?\n|\z)`},
	{kind: "member", words: "auth·", random: true, example: `AUTH fake0redis1pass`, pattern: `AUTH (?:PLAIN |LOGIN |[\w\-]+ )?(\S{6,})`},
	{kind: "member", words: "sig=", example: `https://x.example.org/c?sv=2020&sig=ZmFrZXNpZ25hdHVyZWZha2VzaWduYXR1cmU%3D`, pattern: `sig=([\w%+/\-]{30,}=*)`},
	{kind: "member", words: "q~", back: 4, example: `(the value: fak7Q~00000.11111_22222-33333.44444_55)`, pattern: `[\w~.\-]{3}\dQ~[\w~.\-]{31,34}`},
}

// commands are what is told a secret by an argument.
var commands = []rule{
	{words: "mysql mysqldump mysqladmin mysqlimport mysqlslap mysqlsh mysqlcheck mariadb mariadb-dump mariadb-admin mariadb-backup mycli mytop xtrabackup innobackupex",
		every: true, example: `mysqldump -uroot -pfake-db-1 app`, pattern: `[\s"']-p(?:"([^"]+)"|'([^']+)'|([^\s"'=]+))`},
	{words: "sshpass", every: true, example: `sshpass -p fake-ssh-1 ssh root@192.0.2.1`, pattern: after("-p") + `|[\s"']-p(?:"([^"]+)"|'([^']+)'|([^\s"'=]+))`},
	{words: "redis-cli valkey-cli keydb-cli redis-benchmark", every: true, example: `redis-cli -h 192.0.2.1 -a fake-redis-1 ping`, pattern: after("-a --pass")},
	{words: "ipmitool ipmiutil bmc-config ipmi-sensors ipmi-power ipmipower ipmiconsole", every: true, example: `ipmitool -I lanplus -U admin -P fake-bmc-1 power status`, pattern: after("-P -p -k -y")},
	{words: "curl wget http https httpie xh aria2c", every: true, example: `curl -u elastic:fake-es-1 https://192.0.2.1:9200`,
		pattern: `[\s"'](?:-\w*u|--user|-U|--proxy-user|-a|--auth)` + `(?:[ \t]*|=|["'],[ \t]*)` +
			`(?:"[^"\s]+":"([^"]+)"|"[^":\s]*:([^"]+)"|'[^':\s]*:([^']+)'|["']([^"':\s]{8,}):["']|\\?[^\s"':/]+:` + arg + `)`},
	{words: "snmpget snmpgetnext snmpwalk snmpset snmpbulkwalk snmpbulkget snmptrap snmpinform snmpstatus snmptable snmpdf snmptest snmpcheck snmp-check onesixtyone braa check_snmp",
		every: true, example: `snmpwalk -v3 -u me -A fake-auth-1 -X fake-priv-1 192.0.2.1`, pattern: after("-c -A -X -C --community")},
	{words: "ldapsearch ldapadd ldapmodify ldapdelete ldapwhoami ldappasswd ldapmodrdn ldapcompare", every: true, example: `ldapsearch -D cn=admin -w fake-ldap-1 -b dc=example`, pattern: after("-w -s -a")},
	{words: "smbclient rpcclient smbget smbcacls net nmblookup winexe wmic", every: true, example: `smbclient -U me%fake-smb-1 //nas/share`, pattern: `[\s"'](?:-U|--user)` + `(?:[ \t]*|=|["'],[ \t]*)["']?[^\s"'%]+%([^\s"']+)`},
	{words: "mongo mongosh mongodump mongorestore mongoexport mongoimport mongostat", every: true, example: `mongosh -u root -p fake-mongo-1`, pattern: after("-p")},
	{words: "docker·login podman·login registry·login skopeo·login buildah·login oras·login crane·auth·login nerdctl·login az·login oc·login argocd·login cf·login",
		every: true, example: `docker login -u me -p fake-reg-1 registry.example.org`, pattern: after("-p")},
	{words: "mosquitto_pub mosquitto_sub mosquitto_rr", every: true, example: `mosquitto_pub -u me -P fake-mqtt-1 -t x`, pattern: after("-P")},
	{words: "zip unzip zipcloak fcrackzip", every: true, example: `unzip -P fake-zip-1 x.zip`, pattern: after("-P")},
	{words: "7z 7za 7zr rar unrar", every: true, example: `7z x -pfake-7z-1 x.7z`, pattern: `[\s"']-h?p(?:"([^"]+)"|'([^']+)'|([^\s"'=]+))`},
	{words: "sqlcmd bcp isql osql tsql", every: true, example: `sqlcmd -S db -U sa -P fake-mssql-1`, pattern: after("-P")},
	{words: "racadm ilorest hpilo_cli evil-winrm crackmapexec nxc netexec rdesktop ncftp lftp x3270 hydra govc vcsa-deploy", every: true, example: `racadm -r 192.0.2.1 -u root -p fake-idrac-1 getsysinfo`, pattern: after("-p --pass")},
	{words: "plink pscp psftp putty", every: true, example: `plink -pw fake-putty-1 root@192.0.2.1`, pattern: after("-pw")},
	{words: "xfreerdp xfreerdp3 wlfreerdp mstsc", every: true, example: `xfreerdp /v:192.0.2.1 /u:me /p:fake-rdp-1`, pattern: `[\s"']/(?:p|gp):` + arg},
	{words: "useradd usermod adduser", every: true, example: `useradd -m -p fake-crypt-1 me`, pattern: after("-p")},
	{words: "htpasswd", every: true, example: `htpasswd -nbB me fake-web-1`, pattern: `-\w*n\w*b\w*\s+(?:-\w+\s+)*\S+\s+` + arg + `|-\w*b\w*n\w*\s+(?:-\w+\s+)*\S+\s+` + arg + `|-\w*b\w*\s+(?:-\w+\s+)*\S+\s+\S+\s+` + arg},
	{words: "echo printf", every: true, example: `echo 'root:fake-new-1' | chpasswd`,
		pattern: `^\w+\s+(?:-\w+\s+|["']%s(?:\\n)?["']\s+)*["']?(?:[\w.\-]+:)?([^\s"'|:\\]+)(?:\\n)?["']?\s*\|\s*(?:sudo\s+)?(?:chpasswd|passwd\s+--stdin|sudo\s+-S|cryptsetup|docker login|smbpasswd|openssl|faillock|gpg)`},
	{words: "chpasswd", every: true, example: `chpasswd <<< "root:fake-new-2"`, pattern: `<<<\s*["']?[\w.\-]+:([^\s"']+)`},
	{words: "wpa_passphrase", every: true, example: `wpa_passphrase HomeNet fake-wifi-1`, pattern: `^\w+\s+(?:"[^"]*"|'[^']*'|\S+)\s+` + arg},
	{words: "sqlplus rman expdp impdp", every: true, example: `sqlplus me/fake-ora-1@db`, pattern: `\s[\w$#]+/([^\s@/"']+)@`},
	{words: "nmcli", every: true, example: `nmcli dev wifi connect HomeNet password fake-wifi-2`, pattern: `\s(?:password|\S+\.psk|\S+\.password|\S+\.wep-key\d)\s+` + arg},
	{words: "iwconfig iwctl", every: true, example: `iwctl --passphrase fake-wifi-3 station wlan0 connect x`, pattern: `\s(?:key|--passphrase|-P)\s+(?:s:)?` + arg},
	{words: "iscsiadm", every: true, example: `iscsiadm -m node -o update -n node.session.auth.password -v fake-chap-1`, pattern: `\.password(?:_in)?\s+(?:-v|--value)` + next + arg},
	{words: "nsupdate dig rndc", every: true, example: `nsupdate -y hmac-sha256:upd:ZmFrZXRzaWdrZXk=`, pattern: `\s-y\s*["']?(?:[\w\-]+:)?[^:\s]+:([^\s"']+)`},
	{words: "radtest radclient", every: true, example: `radtest me fake-radius-1 192.0.2.1 0 fake-shared-1`, pattern: `^radtest\s+(?:-\w+\s+)*\S+\s+(\S+)|\s\d+\s+([^\s\d]\S*)$`},
	{words: "vault·login vault·unwrap vault·operator·unseal bao·login bao·operator·unseal", every: true, example: `vault operator unseal ZmFrZXVuc2VhbGtleTAx`, pattern: `(?:login|unwrap|unseal)\s+(?:-\S+\s+)*([A-Za-z0-9+/=.][A-Za-z0-9+/=.\-]{11,})`},
	{words: "vault·kv·put bao·kv·put", every: true, example: `vault kv put secret/app db=fake-kv-1`, pattern: `\s[\w.\-]+=` + arg},
	{words: "--from-literal", example: `kubectl create secret generic x --from-literal=db=fake-k8s-1`, pattern: `--from-literal[= ]["']?[^=\s]+=([^\s"']+)`},
	{words: "net·use", every: true, example: `net use Z: \\nas\share fake-share-1 /user:me`, pattern: `\\\\[^\s\\]+\\\S+\s+([^\s/]\S*)`},
	{words: "openssl", every: true, example: `openssl enc -k fake-enc-1 -in x`, pattern: after("-k -K -pass -passin -passout")},
	{words: "restic borg duplicity gocryptfs encfs", every: true, example: `gocryptfs -extpass "echo fake-fs-1" a b`, pattern: after("-extpass")},
	{words: "smbpasswd kinit ipa kadmin", every: true, example: `kadmin -p admin -w fake-krb-1`, pattern: after("-w")},
	{words: "apg pwgen mkpasswd", every: true, example: `mkpasswd -m sha-512 fake-crypt-2`, pattern: `mkpasswd\s+(?:-m\s+\S+\s+|--method=\S+\s+|-\w+\s+)*` + arg},
	{words: "influx", every: true, example: `influx -username me -password fake-influx-1`, pattern: after("-t -p -password")},
	{words: "rclone", every: true, example: `rclone config create nas sftp pass fake-rclone-1`, pattern: `\s(?:pass|password2?)[ =]` + arg + `|obscure\s+` + arg},
	{words: "unlock-keychain security", every: true, example: `security unlock-keychain -p fake-mac-1`, pattern: after("-p -w")},
	{words: "ansible ansible-playbook ansible-vault", every: true, example: `ansible all -e 'ansible_password=fake-ans-1'`, pattern: `(?:ansible_(?:ssh_)?pass(?:word)?|ansible_become_pass(?:word)?)=` + arg},
}
