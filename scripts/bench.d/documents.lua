-- JSON documents in the shapes of three that JSON libraries are measured with: tweets (long strings
-- of all scripts), a catalogue (small objects with few keys) and a map (floats).
local documents = {}

local state = 20240229
local function random(limit)
  state = (state * 6364136223846793005 + 1442695040888963407) & math.maxinteger
  return (state >> 20) % limit
end

local function japanese(count)
  local codes = {}
  for i = 1, count do
    codes[i] = random(3) == 0 and 0x3041 + random(80) or 0x4e00 + random(20000)
  end
  return utf8.char(table.unpack(codes))
end

local function user()
  local id = 1000000000 + random(2000000000)
  return ([[{
        "id": %d,
        "id_str": "%d",
        "name": "%s",
        "screen_name": "user_%d",
        "location": "",
        "description": "%s\n%s",
        "url": null,
        "entities": {
          "description": {
            "urls": []
          }
        },
        "protected": false,
        "followers_count": %d,
        "friends_count": %d,
        "created_at": "Sun Aug 31 00:29:15 +0000 2014",
        "favourites_count": %d,
        "utc_offset": null,
        "verified": false,
        "lang": "ja",
        "profile_background_image_url_https": "https://abs.example/images/themes/theme1/bg.png",
        "profile_image_url_https": "https://pbs.example/profile_images/%d/oLRmBVxX_normal.jpeg",
        "profile_text_color": "333333",
        "profile_use_background_image": true,
        "default_profile": true,
        "following": false
      }]]):format(id, id, japanese(6), id, japanese(30), japanese(20), random(9999), random(999),
    random(9999), id)
end

function documents.tweets()
  local statuses = {}
  for i = 1, 300 do
    local id = 505874924095815681 + random(1 << 40)
    statuses[i] = ([[    {
      "metadata": {
        "result_type": "recent",
        "iso_language_code": "ja"
      },
      "created_at": "Sun Aug 31 00:29:15 +0000 2014",
      "id": %d,
      "id_str": "%d",
      "text": "@user_%d\n\n%s http:\/\/t.example\/%x",
      "source": "<a href=\"http:\/\/tweets.example\/download\" rel=\"nofollow\">Tweets<\/a>",
      "truncated": false,
      "in_reply_to_status_id": null,
      "user": %s,
      "geo": null,
      "retweet_count": %d,
      "entities": {
        "hashtags": [],
        "user_mentions": [
          {
            "name": "%s",
            "id": %d,
            "indices": [
              0,
              %d
            ]
          }
        ]
      },
      "favorited": false,
      "lang": "ja"
    }]]):format(id, id, random(9999), japanese(60), id, user(), random(99), japanese(6), id,
      random(99))
  end
  return '{\n  "statuses": [\n' .. table.concat(statuses, ",\n") .. "\n  ]\n}\n"
end

function documents.catalogue()
  local performances = {}
  for i = 1, 300 do
    local prices, seats = {}, {}
    for j = 1, 1 + random(4) do
      prices[j] = ([[                {
                    "amount": %d,
                    "audienceSubCategoryId": 337100890,
                    "seatCategoryId": %d
                }]]):format(10000 + random(190000), 338937295 + j)
    end
    for j = 1, 1 + random(7) do
      local areas = {}
      for k = 1, 3 + random(14) do
        areas[k] = ([[                        {
                            "areaId": %d,
                            "blockIds": []
                        }]]):format(205705999 + k)
      end
      seats[j] = ([[                {
                    "areas": [
%s
                    ],
                    "seatCategoryId": %d
                }]]):format(table.concat(areas, ",\n"), 338937295 + j)
    end
    performances[i] = ([[        {
            "eventId": 138586341,
            "id": %d,
            "logo": null,
            "name": null,
            "prices": [
%s
            ],
            "seatCategories": [
%s
            ],
            "start": %d,
            "venueCode": "PLEYEL_PLEYEL"
        }]]):format(339887544 + i, table.concat(prices, ",\n"), table.concat(seats, ",\n"),
      1372701600000 + i)
  end
  return '{\n    "performances": [\n' .. table.concat(performances, ",\n") .. "\n    ]\n}\n"
end

function documents.map()
  local rings = {}
  for i = 1, 480 do
    local points = {}
    for j = 1, 116 do
      -- Coordinates as a program wrote them that rounds to 15 places.
      points[j] = ("[%.15f,%.15f]"):format(
        -141 + random(90000000) / 1e6, 42 + random(40000000) / 1e6)
    end
    rings[i] = "[" .. table.concat(points, ",") .. "]"
  end
  return '{"type":"FeatureCollection","features":[{"type":"Feature","geometry":{"type":"Polygon",'
    .. '"coordinates":[' .. table.concat(rings, ",") .. "]}}]}"
end

return documents
